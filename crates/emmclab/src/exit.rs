//! Exit codes: 0 good, 1 findings, 2 usage or unreadable input, 3 not supported or unknown, 4 refused for safety.

use std::process::ExitCode;

use emmc_port::SourceError;

use crate::output::Output;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Good,
    Findings,
    Unusable,
    Unknown,
    Refused,
    /// A monitoring plugin's code: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
    Nagios(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Good => 0,
            Exit::Findings => 1,
            Exit::Unusable => 2,
            Exit::Unknown => 3,
            Exit::Refused => 4,
            Exit::Nagios(code) => code,
        })
    }
}

/// Prints what clap has to say; a monitoring system reads a usage error of `check` as UNKNOWN.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // Printing fails only where the output is gone, and then there is nobody to tell.
    let _ = error.print();
    let checking = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).is_some_and(|verb| verb == "check");
    match error.exit_code() {
        0 => Exit::Good.into(),
        _ if checking => Exit::Nagios(3).into(),
        _ => Exit::Unusable.into(),
    }
}

/// Prints one line on standard error, and under `--json` one object, and says with which code to exit.
pub(crate) fn report(error: &anyhow::Error, output: &Output) -> ExitCode {
    if let Some(io) = error.downcast_ref::<std::io::Error>() {
        // The reader went away, as in `emmclab show x | head`: nothing is wrong with the card.
        if io.kind() == std::io::ErrorKind::BrokenPipe {
            return Exit::Good.into();
        }
    }
    output.error(&format!("{error:#}"));
    match error.downcast_ref::<SourceError>() {
        Some(SourceError::Unsupported { .. }) => Exit::Unknown.into(),
        _ => Exit::Unusable.into(),
    }
}
