//! Completions and manual pages, from the one definition of the command line.

use anyhow::Context;
use clap::CommandFactory;

use crate::CommandResult;
use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn completions(args: &CompletionsArgs, output: &mut Output) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "emmclab", &mut script);
    output.write(&String::from_utf8(script)?)?;
    Ok(Exit::Good)
}

pub(crate) fn man(args: &ManArgs) -> CommandResult {
    let name = args.folder.display();
    std::fs::create_dir_all(&args.folder).with_context(|| format!("{name}: cannot make the folder"))?;
    clap_mangen::generate_to(Cli::command(), &args.folder).with_context(|| format!("{name}: cannot write"))?;
    Ok(Exit::Good)
}
