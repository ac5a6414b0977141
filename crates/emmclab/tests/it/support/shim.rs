//! The project's replacement of a live card: see testdata/shim/mmc_ioc_shim.c.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{Run, command, run, save, scratch, skip, testdata};

/// The path of the card for the binary; no machine has this many cards.
pub(crate) const DEVICE: &str = "/dev/mmcblk249";

/// A card for commands, and the log of the sent ones.
pub(crate) struct LiveCard {
    folder: PathBuf,
    library: PathBuf,
    ext_csd: String,
    /// More of the shim's settings.
    pub(crate) settings: Vec<(&'static str, String)>,
}

impl LiveCard {
    /// A card with these registers, its own folder and the reply to CMD56; `None`, with a message on standard error, if
    /// there is no C compiler.
    pub(crate) fn new(test: &str, ext_csd: [u8; 512], cmd56: [u8; 512]) -> Option<Self> {
        let library = library()?.to_path_buf();
        let folder = scratch(test);
        let ext_csd = save(&folder, "ext_csd.bin", ext_csd);
        // Whatever would write fails, so that a command that slips through is seen twice.
        let settings =
            vec![("EMMC_SHIM_CMD56", save(&folder, "cmd56.bin", cmd56)), ("EMMC_SHIM_READONLY", "1".to_owned())];
        Some(Self { folder, library, ext_csd, settings })
    }

    /// The folder for the test's files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs the binary with the card, and returns the sent commands.
    pub(crate) fn run(&self, args: &[&str]) -> (Run, Vec<String>) {
        let log = save(&self.folder, "shim.log", "");
        let mut command = command();
        command.args(args).env("LD_PRELOAD", &self.library).env("EMMC_SHIM_DEVICE", DEVICE);
        command.env("EMMC_SHIM_EXT_CSD", &self.ext_csd).env("EMMC_SHIM_LOG", &log);
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        let outcome = run(command);
        let log = std::fs::read_to_string(log).unwrap();
        (outcome, log.lines().map(str::to_owned).collect())
    }
}

fn library() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let library = scratch("shim").join("mmc_ioc_shim.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(&library);
        match compiler.arg(testdata("shim/mmc_ioc_shim.c")).output() {
            Err(error) => {
                skip(&format!("no C compiler (cc: {error}); Debian: apt install gcc libc6-dev"));
                None
            }
            Ok(output) => {
                assert!(output.status.success(), "no shim:\n{}", String::from_utf8_lossy(&output.stderr));
                Some(library)
            }
        }
    };
    LIBRARY.get_or_init(build).as_deref()
}
