//! The arguments of commands that print what follows from the program itself: schemas, completions, manual pages.

use clap::Args;

#[cfg(feature = "schema")]
use super::DocumentName;

#[cfg(feature = "schema")]
#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// Which document
    pub(crate) document: DocumentName,
}

#[cfg(feature = "pages")]
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(feature = "pages")]
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder; created if it does not exist
    pub(crate) folder: std::path::PathBuf,
}
