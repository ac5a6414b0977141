//! `trace analyse`: recordings of Linux as spans of requests.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use emmc_trace::{Input, Storage, analyse, open};

use crate::CommandResult;
use crate::cli::{TraceAnalyseArgs, TraceCommand};
use crate::exit::Exit;
use crate::input;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.trace-analyse/1";

/// Most bytes of a pipe, which has to be kept in memory. A file is read piece by piece.
const PIPE_BYTES_MAX: u64 = 1 << 30;
const FILES_MAX: usize = 4096;

pub(crate) fn run(command: &TraceCommand, output: &mut Output) -> CommandResult {
    let TraceCommand::Analyse(args) = command;
    run_analyse(args, output)
}

fn run_analyse(args: &TraceAnalyseArgs, output: &mut Output) -> CommandResult {
    ensure!(args.files.len() <= FILES_MAX, "{} files; expected at most {FILES_MAX}", args.files.len());
    let is_input = |path: &&std::path::PathBuf| path.as_os_str() == "-";
    ensure!(args.files.iter().filter(is_input).count() < 2, "standard input can be only one of the files");
    let inputs = args.files.iter().map(|path| storage(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let analysis = analyse(open(inputs)?, args.device);
    output.print(SCHEMA, &analysis, emmc_report::present::trace)?;
    let has_commands = analysis.commands.is_some();
    Ok(match (analysis.requests > 0 || has_commands, analysis.causes.is_empty()) {
        (false, _) => Exit::Unknown,
        (true, true) => Exit::Good,
        (true, false) => Exit::Findings,
    })
}

/// A file that is read piece by piece.
struct Pieces {
    file: File,
    size_bytes: u64,
}

impl Storage for Pieces {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

fn storage(path: &Path) -> anyhow::Result<Input> {
    let name = if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() };
    let cannot = || format!("{name}: cannot read");
    let storage: Arc<dyn Storage> = if path.as_os_str() == "-" {
        Arc::new(input::limited(&name, io::stdin().lock(), PIPE_BYTES_MAX)?)
    } else if std::fs::metadata(path).with_context(cannot)?.is_file() {
        let file = File::open(path).with_context(cannot)?;
        let size_bytes = file.metadata().with_context(cannot)?.len();
        Arc::new(Pieces { file, size_bytes })
    } else {
        Arc::new(input::read(path, PIPE_BYTES_MAX)?)
    };
    Ok(Input { name, storage })
}
