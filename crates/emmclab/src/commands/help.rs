//! `help`: a command's help, or a topic.

use anyhow::Context;
use clap::ColorChoice;
use emmc_report::{Align, Document, Table};

use crate::CommandResult;
use crate::cli::{HelpArgs, command};
use crate::exit::Exit;
use crate::output::Output;
use crate::topics::{TOPICS, Topic};

pub(crate) fn run(args: &HelpArgs, output: &mut Output) -> CommandResult {
    if args.words == ["topics"] {
        output.document(&topics())?;
    } else if let Some(topic) = Topic::named(&args.words) {
        output.document(&topic.document())?;
    } else {
        output.write(&of_command(&args.words, output.color())?)?;
    }
    Ok(Exit::Good)
}

/// The help of a command, as printed by `--help`.
fn of_command(words: &[String], color: ColorChoice) -> anyhow::Result<String> {
    let top = command().color(color);
    let (mut found, mut line) = (&top, vec!["emmclab"]);
    for word in words {
        // `sim ctl CARD stop`: an argument before a subcommand gets a placeholder.
        line.extend(found.get_positionals().map(|_| "-"));
        let unknown = || {
            let topics: Vec<_> = TOPICS.iter().map(|topic| topic.name).collect();
            format!("help: no command or topic {:?}; topics: {}", words.join(" "), topics.join(", "))
        };
        found = found.find_subcommand(word).with_context(unknown)?;
        line.push(word);
    }
    line.push("--help");
    let help = top.clone().try_get_matches_from(line).err().context("help: this command has no help")?.render();
    Ok(if color == ColorChoice::Always { help.ansi().to_string() } else { help.to_string() })
}

fn topics() -> Document {
    let mut document = Document::new("Help topics");
    let mut table = Table::new([("topic", Align::Left), ("about", Align::Left)]);
    for topic in TOPICS {
        table.row([topic.name, topic.about]);
    }
    document.section("topics", "Topics").push(table).paragraph(
        "`emmclab help TOPIC` prints one, `emmclab help COMMAND` a command's help with examples. \
The manual pages have the same: `emmclab man FOLDER` writes them.",
    );
    document
}
