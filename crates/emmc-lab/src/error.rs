//! Why there is no result.

use std::io;
use std::path::{Path, PathBuf};

/// Why a machine did not run to the end of its script.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No kernel was named, and none is where they are looked for.
    #[error(
        "no kernel for the lab in {looked}; in a checkout of emmclab `cargo xtask guest build --uml --to {}` makes one",
        default.display()
    )]
    NoKernel {
        /// The places.
        looked: String,
        /// The one to make it in.
        default: PathBuf,
    },
    /// The named kernel, or the first file system beside it, is not there.
    #[error("{}: {what}", path.display())]
    Kernel {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A file or process of this machine.
    #[error("{what}: {source}")]
    System {
        /// Doing what.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// The card cannot be served.
    #[error("{0}")]
    Serve(String),
    /// The kernel ended before its first process said anything.
    #[error("the kernel ended at once ({status}): {console}")]
    EndedAtOnce {
        /// Its status.
        status: String,
        /// The end of its messages.
        console: String,
    },
    /// The machine ended before its script.
    #[error("the machine ended before the script, at {seconds:.6} s: {why}")]
    Ended {
        /// Simulated. Unit: seconds.
        seconds: f64,
        /// Why, as far as known.
        why: String,
    },
    /// Simulated time stands still.
    #[error(
        "no progress: the simulated clock has stood at {seconds:.6} s for {real_s} s of real time, as in a loop that \
         never waits; the machine was ended (--patience)"
    )]
    StandsStill {
        /// Simulated. Unit: seconds.
        seconds: f64,
        /// Real time.
        real_s: u64,
    },
    /// Simulated time advances, and nothing happens.
    #[error(
        "nothing happens: between {seconds:.6} s and {until_s:.0} s of simulated time there was no access to the card \
         ({real_s} s of real time), as if the script waited for something that never comes; the machine was ended \
         (--patience)"
    )]
    Waits {
        /// Simulated time of the last access. Unit: seconds.
        seconds: f64,
        /// Simulated time at the end. Unit: seconds.
        until_s: f64,
        /// Real time in between.
        real_s: u64,
    },
    /// The script takes longer than the caller allows.
    #[error("the script did not end within {limit_s} simulated seconds; the machine was ended (--limit)")]
    TooLong {
        /// Simulated time that it may take.
        limit_s: u64,
    },
    /// A signal asked for the end.
    #[error("stopped by a signal")]
    Stopped,
}

impl LabError {
    /// The system's error in doing `what`.
    pub(crate) fn system(what: impl ToString) -> impl FnOnce(io::Error) -> Self {
        let what = what.to_string();
        move |source| Self::System { what, source }
    }

    /// The system's error with a file.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::system(path.display())
    }
}
