//! Completions and manual pages, from the one definition of the command line.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::CommandResult;
use crate::cli::{Cli, CompletionsArgs, ManArgs, examples};
use crate::exit::Exit;
use crate::output::Output;
use crate::topics;

/// Bash splits `sim:generic-8g` into three words unless the colon is removed from COMP_WORDBREAKS.
const BASH_COLON: &str = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}\n";

pub(crate) fn completions(args: &CompletionsArgs, output: &mut Output) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "emmclab", &mut script);
    output.write(&String::from_utf8(script)?)?;
    if args.shell == Shell::Bash {
        output.write(BASH_COLON)?;
    }
    Ok(Exit::Good)
}

pub(crate) fn man(args: &ManArgs) -> CommandResult {
    let name = args.folder.display();
    std::fs::create_dir_all(&args.folder).with_context(|| format!("{name}: cannot create the folder"))?;
    // Pages are written to a temporary folder first, so that a full disk leaves no partial page under a final name.
    let hidden = args.folder.join(format!(".emmclab-man.{}", std::process::id()));
    std::fs::create_dir(&hidden).with_context(|| format!("{name}: cannot write"))?;
    let mut top = Cli::command();
    top.build();
    let made = pages(top, "", &hidden).and_then(|()| {
        std::fs::read_dir(&hidden)?.try_for_each(|page| {
            let page = page?;
            std::fs::rename(page.path(), args.folder.join(page.file_name()))
        })
    });
    // Files of a failed attempt are of no use.
    let _ = std::fs::remove_dir_all(&hidden);
    made.with_context(|| format!("{name}: cannot write"))?;
    Ok(Exit::Good)
}

/// The page of a command, and those of the commands below it.
fn pages(command: Command, path: &str, folder: &Path) -> io::Result<()> {
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" || path.is_empty()) {
        pages(sub.clone(), format!("{path} {}", sub.get_name()).trim(), folder)?;
    }
    let (has_options, has_commands) = (command.get_arguments().next().is_some(), command.has_subcommands());
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if has_options {
        man.render_options_section(&mut page)?;
    }
    if has_commands {
        man.render_subcommands_section(&mut page)?;
    }
    exit_status(path).to_writer(&mut page)?;
    example_section(path).to_writer(&mut page)?;
    man.render_version_section(&mut page)?;
    let mut file = std::fs::File::create(folder.join(man.get_filename()))?;
    file.write_all(&page)
}

fn exit_status(path: &str) -> Roff {
    let (codes, check) = topics::exit_codes();
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    if path == "check" {
        roff.text([roman(check)]);
        return roff;
    }
    for [code, meaning] in codes {
        roff.control("TP", []).text([bold(code)]).text([roman(meaning)]);
    }
    roff
}

fn example_section(path: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    for example in examples(path) {
        roff.control("TP", []).text([bold(example.line)]).text([roman(example.about)]);
    }
    roff
}
