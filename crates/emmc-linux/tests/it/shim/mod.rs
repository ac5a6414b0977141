//! The project's replacement of a card: see testdata/shim/mmc_ioc_shim.c.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The card's path for programs under the shim; no machine has 250 cards.
pub(crate) const DEVICE: &str = "/dev/mmcblk249";

/// A file or folder of testdata.
pub(crate) fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

/// A file of this test binary's own.
pub(crate) fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", env!("CARGO_CRATE_NAME")))
}

/// Prints why a test is skipped, even if the output of tests is captured.
pub(crate) fn skip(why: &str) {
    // If standard error is closed, the message is dropped.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// The shim, built once; `None`, with a message on standard error, if there is no C compiler.
pub(crate) fn build() -> Option<&'static Path> {
    static SHIM: OnceLock<Option<PathBuf>> = OnceLock::new();
    SHIM.get_or_init(|| {
        let library = scratch("mmc_ioc_shim.so");
        let source = testdata("shim/mmc_ioc_shim.c");
        let output = match Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"])
            .arg(&library)
            .arg(source)
            .output()
        {
            Ok(output) => output,
            Err(error) => {
                skip(&format!("no C compiler (cc: {error}); Debian: apt install gcc libc6-dev"));
                return None;
            }
        };
        assert!(output.status.success(), "the shim does not compile:\n{}", String::from_utf8_lossy(&output.stderr));
        Some(library)
    })
    .as_deref()
}

/// A command under the shim, whose card has the EXT_CSD in that file.
pub(crate) fn command(shim: &Path, program: impl AsRef<std::ffi::OsStr>, ext_csd: &Path, log: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", shim).env("EMMC_SHIM_DEVICE", DEVICE).env("EMMC_SHIM_EXT_CSD", ext_csd);
    command.env("EMMC_SHIM_LOG", log);
    command
}

/// The bytes of a dump of 1024 hexadecimal digits; `None` if it has not that many.
pub(crate) fn hex_dump(path: &Path) -> Option<[u8; 512]> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let text = text.trim();
    let digits = (text.len() == 1024).then_some(text)?;
    let bytes = (0..512).map(|index| u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok());
    bytes.collect::<Option<Vec<u8>>>()?.try_into().ok()
}
