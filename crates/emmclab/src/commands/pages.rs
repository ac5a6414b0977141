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
    // Pages are made in a folder of their own first: a full disk leaves no half a page under a name that counts.
    let hidden = args.folder.join(format!(".emmclab-man.{}", std::process::id()));
    std::fs::create_dir(&hidden).with_context(|| format!("{name}: cannot write"))?;
    let made = clap_mangen::generate_to(Cli::command(), &hidden).and_then(|()| {
        std::fs::read_dir(&hidden)?.try_for_each(|page| {
            let page = page?;
            std::fs::rename(page.path(), args.folder.join(page.file_name()))
        })
    });
    // What is left of a failed attempt is of no use to anybody.
    let _ = std::fs::remove_dir_all(&hidden);
    made.with_context(|| format!("{name}: cannot write"))?;
    Ok(Exit::Good)
}
