//! Runs the same job on the virtual card and on another simulator built by the user, side by side.
//!
//! Edge: files, a clock, another program. Nothing of the other simulator is part of this project.

mod clock;
mod mqsim;
mod ours;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "emmc-compare", about = "The same job on the virtual card and on another simulator")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// MQSim (CMU-SAFARI), event-driven, for NVMe and SATA disks
    Mqsim(Mqsim),
}

/// What a comparison with MQSim needs.
#[derive(Debug, Args)]
struct Mqsim {
    /// The MQSim program, as built by its own Makefile
    #[arg(long, value_name = "PROGRAM")]
    mqsim: PathBuf,
    /// A shipped profile
    #[arg(long, value_name = "NAME")]
    profile: String,
    /// The job, as for `emmclab sim run`
    #[arg(long, value_name = "FILE")]
    job: PathBuf,
    /// How many times slower MQSim gets the requests than the virtual card processed them: with a backlog MQSim itself
    /// is slow
    #[arg(long, value_name = "FACTOR", default_value_t = 6.0, value_parser = stretch)]
    stretch: f64,
    /// Keeps MQSim's configuration, trace and results in this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

fn stretch(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok().filter(|factor| (1.0..=1e6).contains(factor));
    factor.ok_or_else(|| "must be a number from 1 to 1000000".into())
}

fn main() -> ExitCode {
    let Command::Mqsim(options) = Cli::parse().command;
    match compare(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("emmc-compare: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn compare(options: &Mqsim) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(&options.job).with_context(|| options.job.display().to_string())?;
    let (ours, job) = ours::run(&options.profile, &text)?;
    if !options.mqsim.is_file() {
        println!("SKIPPED: {} is no file; MQSim was not run", options.mqsim.display());
        println!("{}", table::render(&[&ours]));
        return Ok(());
    }
    let folder = match &options.keep {
        Some(folder) => folder.clone(),
        None => std::env::temp_dir().join(format!("emmc-compare-{}", std::process::id())),
    };
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let theirs = mqsim::run(options, &job, &ours, &folder);
    if options.keep.is_none() {
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    println!("{}", table::render(&[&ours, &theirs?]));
    println!("MQSim got the requests {} times slower, so its simulated time is not comparable.", options.stretch);
    Ok(())
}
