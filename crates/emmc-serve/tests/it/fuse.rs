//! Areas as files and as loop devices, with the usual programs.

mod files;
mod loops;

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use emmc_serve::block::Block;
use emmc_serve::fuse::{self, Mounted};

/// A folder with a card's areas in it; gone at the end of a test.
pub(crate) struct Folder {
    pub(crate) mounted: Option<Mounted>,
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn empty(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("emmclab-fuse-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self { mounted: None, path }
    }

    /// `None`, with a message, if FUSE cannot be used.
    pub(crate) fn mount(name: &str, block: Arc<dyn Block>) -> Option<Self> {
        if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
            eprintln!("SKIPPED: /dev/fuse: {error}");
            return None;
        }
        if !is_root() && run("fusermount3", &["-V"]).is_none() {
            return None;
        }
        let mut folder = Self::empty(name);
        folder.mounted = Some(fuse::mount(block, &folder.path).unwrap());
        Some(folder)
    }

    pub(crate) fn mounted(&mut self) -> &mut Mounted {
        self.mounted.as_mut().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.mounted = None;
        let _ = std::fs::remove_dir(&self.path);
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The standard output of a program; `None`, with a message, if it is not installed.
pub(crate) fn run(program: &str, args: &[&str]) -> Option<String> {
    match Command::new(program).args(args).stdin(Stdio::null()).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: {program} is not installed (./setup --tests)");
            None
        }
        Err(error) => panic!("{program}: {error}"),
        Ok(output) => {
            let (told, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{program} {args:?}: {}\n{told}{error}", output.status);
            Some(told.into_owned())
        }
    }
}
