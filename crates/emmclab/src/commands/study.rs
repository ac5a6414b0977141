//! `study`: everything about one card, in one report.

use emmc_analysis::finding::Severity;
use emmc_analysis::study::{Study, StudyOptions, study};
use emmc_port::CardData;
#[cfg(not(feature = "sim"))]
use emmc_port::{RegisterSource, saved::SavedSource};

use crate::CommandResult;
use crate::cli::StudyArgs;
use crate::exit::Exit;
use crate::output::Output;
#[cfg(feature = "html")]
use crate::save::deliver;
use crate::source;

pub(crate) const SCHEMA: &str = "emmclab.study/1";

/// What is studied when no card is given: a virtual card that has lived.
#[cfg(feature = "sim")]
const WORN: &str = "sim:generic-8g@62%";

/// A real part's EXT_CSD, as its owner published it: the same where there are no virtual cards.
#[cfg(not(feature = "sim"))]
const EXAMPLE: &[u8] = include_bytes!("../../../../testdata/ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
#[cfg(not(feature = "sim"))]
const EXAMPLE_NAME: &str = "samsung-klm-8g (a real 8 GB eMMC's dump that ships with emmclab)";

pub(crate) fn run(args: &StudyArgs, output: &mut Output) -> CommandResult {
    let card = card(args)?;
    let study = study(&card, &StudyOptions::default());
    #[cfg(feature = "html")]
    if let Some(path) = &args.output {
        let page = html(&study);
        let saved = deliver(output, path, &page, args.force, &args.more.files(args.source.as_deref()))?;
        if saved && !output.is_json() {
            output.said(&format!("{}: written", path.display()))?;
        }
        if !(saved && output.is_json()) {
            return Ok(exit(&study));
        }
    }
    output.print(SCHEMA, &study, emmc_report::present::study)?;
    Ok(exit(&study))
}

fn card(args: &StudyArgs) -> anyhow::Result<CardData> {
    let Some(name) = &args.source else {
        anyhow::ensure!(!args.vendor_health, "--vendor-health asks a live card: name one");
        let mut card = example()?;
        source::add(&mut card, &args.more)?;
        return Ok(card);
    };
    let mut card = source::open_with(name, &args.more)?;
    if args.vendor_health {
        source::add_live_vendor(&mut card, name, &args.more)?;
    }
    Ok(card)
}

#[cfg(feature = "sim")]
fn example() -> anyhow::Result<CardData> {
    source::open_one(WORN, None)
}

#[cfg(not(feature = "sim"))]
fn example() -> anyhow::Result<CardData> {
    Ok(SavedSource::new(EXAMPLE_NAME, EXAMPLE.to_vec()).read()?)
}

#[cfg(feature = "html")]
fn html(study: &Study) -> String {
    let options = emmc_report::HtmlOptions { generated_by: concat!("emmclab ", env!("CARGO_PKG_VERSION")).into() };
    emmc_report::html(&emmc_report::present::study(study), &options)
}

fn exit(study: &Study) -> Exit {
    match study.findings.iter().map(|finding| finding.severity).min() {
        Some(Severity::Critical | Severity::Warning) => Exit::Findings,
        _ => Exit::Good,
    }
}
