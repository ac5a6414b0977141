//! `show`: the registers, decoded.

use emmc_analysis::registers::{self, RegisterRow, Registers};

use crate::CommandResult;
use crate::cli::ShowArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::source;

pub(crate) const SCHEMA: &str = "emmclab.show/1";

pub(crate) fn run(args: &ShowArgs, output: &mut Output) -> CommandResult {
    let card = source::open(&args.source)?;
    let mut shown = Registers::new(&card, args.all);
    if let Some(name) = &args.field {
        shown.fields.retain(|row| row.is_named(name));
        shown.anomalies.retain(|anomaly| anomaly.field.eq_ignore_ascii_case(name));
        if shown.fields.is_empty() {
            let known = registers::is_known_name(name);
            let why = if known { "this source does not contain it" } else { "no register has a field of that name" };
            output.error(&format!("{}: {name}: {why}", args.source.source));
            return Ok(if known { Exit::Unknown } else { Exit::Unusable });
        }
    }
    match (args.raw && !output.is_json(), &args.field) {
        (true, _) => output.write(&raw(&shown.fields, args.field.is_some()))?,
        (false, Some(_)) if !output.is_json() => output.document(&emmc_report::present::field(&shown))?,
        _ => output.print(SCHEMA, &shown, |shown| emmc_report::present::registers(shown, args.all, args.full))?,
    }
    Ok(Exit::Good)
}

/// One line per field: only the number for a single field, else register, name and number.
fn raw(rows: &[RegisterRow], alone: bool) -> String {
    let line = |row: &RegisterRow| match alone {
        true => format!("{}\n", row.raw_hex()),
        false => format!("{} {} {}\n", row.register, row.name, row.raw_hex()),
    };
    rows.iter().map(line).collect()
}
