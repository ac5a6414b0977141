//! Programs held in a known state, which a signal ends even if the tests were started to ignore it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The signals that `nohup` and `&` in a script have a process ignore, and that its children inherit as ignored.
const DEFAULT_SIGNALS: &str = "--default-signal=HUP,INT,QUIT";

/// A program with the default dispositions of HUP, INT and QUIT. Its process has the number of the child.
pub(crate) fn with_default_signals(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command.arg(DEFAULT_SIGNALS).arg(program).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command
}

/// A point at which a bench waits. It continues when this is dropped, or after a stop signal.
pub(crate) struct Hold {
    file: PathBuf,
}

impl Hold {
    /// Makes the command wait when it reaches `point` for the `count`-th time. `folder` is the test's own.
    pub(crate) fn at(command: &mut Command, point: &str, count: u32, folder: &Path) -> Self {
        let file = folder.with_extension("held");
        let _ = std::fs::remove_file(&file);
        command.env("EMMCLAB_HOLD_AT", format!("{point}:{count}:{}", file.display()));
        Self { file }
    }

    /// Returns when the program is held.
    #[track_caller]
    pub(crate) fn wait(&self, child: &mut Child) {
        while !self.file.exists() {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it was held: {}", self.file.display());
            std::thread::yield_now();
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}
