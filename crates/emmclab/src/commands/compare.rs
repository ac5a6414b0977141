//! `compare` and `import`: results of emmclab and of other tools, side by side or alone.

use std::path::Path;

use anyhow::Context;
use emmc_workload::compare::{Certainty, compare};
use emmc_workload::import::{RESULT_BYTES_MAX, SavedResult, read};
use emmc_workload::reference::{PREFIX, Reference, reference, references};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::{CompareArgs, ImportArgs};
use crate::exit::Exit;
use crate::input;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.compare/1";
pub(crate) const IMPORT_SCHEMA: &str = "emmclab.import/1";
pub(crate) const LIST_SCHEMA: &str = "emmclab.references/1";

/// One for each letter that names a column.
const RESULTS_MAX: usize = 26;

/// What `compare --list` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ReferenceList {
    /// Every published result.
    references: Vec<Reference>,
}

pub(crate) fn run(args: &CompareArgs, output: &mut Output) -> CommandResult {
    if args.list {
        return list(output);
    }
    anyhow::ensure!(args.results.len() > 1, "compare {}: expected at least two results", args.results.join(" "));
    anyhow::ensure!(args.results.len() <= RESULTS_MAX, "compare: {} results; expected at most 26", args.results.len());
    let is_input = |name: &&String| *name == "-";
    anyhow::ensure!(args.results.iter().filter(is_input).count() < 2, "standard input can be only one of the results");
    let results = args.results.iter().map(|name| open(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let comparison = compare(&results);
    output.print(SCHEMA, &comparison, emmc_report::present::compared)?;
    let mut cells = comparison.rows.iter().flat_map(|row| &row.cells);
    Ok(match comparison.rows.is_empty() {
        true => Exit::Unknown,
        false if cells.any(|cell| cell.certainty == Some(Certainty::Differs)) => Exit::Findings,
        false => Exit::Good,
    })
}

pub(crate) fn import(args: &ImportArgs, output: &mut Output) -> CommandResult {
    let result = open(&args.result.to_string_lossy())?;
    output.print(IMPORT_SCHEMA, &result, emmc_report::present::imported)?;
    Ok(Exit::Good)
}

fn list(output: &mut Output) -> CommandResult {
    let references = references();
    if output.is_json() {
        let list = ReferenceList { references };
        return output.print(LIST_SCHEMA, &list, |_| unreachable!("JSON was asked for")).map(|()| Exit::Good);
    }
    for reference in references {
        output.said(&format!("{PREFIX}{:<42} {}", reference.name, reference.about))?;
    }
    Ok(Exit::Good)
}

/// Reads a saved or published result.
pub(crate) fn open(name: &str) -> anyhow::Result<SavedResult> {
    if let Some(published) = name.strip_prefix(PREFIX) {
        let found = reference(published).map(Reference::result);
        return found.with_context(|| format!("{name}: no such published result; compare --list prints them"));
    }
    let most = RESULT_BYTES_MAX as u64;
    let bytes = match name {
        "-" => input::limited("standard input", std::io::stdin().lock(), most)?,
        path => input::read(Path::new(path), most)?,
    };
    let name = if name == "-" { "standard input" } else { name };
    Ok(read(name, &bytes)?)
}
