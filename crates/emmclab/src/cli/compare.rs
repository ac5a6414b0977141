//! The arguments of `compare` and `import`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Results; the first is the baseline. JSON of bench, output of fio, iozone, flashbench, bonnie++,
    /// hdparm or dd, or ref:NAME
    #[arg(required_unless_present = "list", num_args = 1.., value_name = "RESULT", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = super::known::result(), hide_possible_values = true)]
    pub(crate) results: Vec<String>,
    /// List the published results that ref:NAME names
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// Output of fio (JSON), iozone, flashbench, bonnie++, hdparm, dd or bench --json; - for standard input
    pub(crate) result: PathBuf,
}
