//! `sim profiles`: the parts that can be simulated.

use emmc_card::profile::{Profile, shipped};
use emmc_report::{Align, Cell, Document, Table};
use emmc_units::Bytes;
use serde::Serialize;

use crate::CommandResult;
use crate::cli::SimProfilesArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.sim-profiles/1";

/// What `sim profiles --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ProfileList {
    /// The shipped profiles, by name.
    profiles: Vec<ProfileLine>,
}

/// A shipped profile.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ProfileLine {
    /// Its name for `--profile` and `sim:`.
    name: String,
    /// `emmc` or `sd`.
    kind: String,
    /// The user area.
    user_bytes: u64,
    /// Cell mode as built.
    cell: String,
    /// `page` or `segment`.
    mapping: String,
    /// A description in one line.
    description: String,
    /// The source of its figures.
    sources: Vec<String>,
}

impl ProfileLine {
    fn new(profile: Profile) -> Self {
        Self {
            kind: format!("{:?}", profile.kind).to_lowercase(),
            user_bytes: profile.areas.user_bytes,
            cell: format!("{:?}", profile.nand.cell).to_lowercase(),
            mapping: format!("{:?}", profile.ftl.mapping).to_lowercase(),
            name: profile.name,
            description: profile.description,
            sources: profile.sources,
        }
    }
}

pub(crate) fn run(args: &SimProfilesArgs, output: &mut Output) -> CommandResult {
    if let Some(name) = &args.name {
        let name = name.strip_prefix("sim:").unwrap_or(name);
        let profile = shipped::named(name)?;
        if output.is_json() {
            let list = ProfileList { profiles: vec![ProfileLine::new(profile)] };
            output.print(SCHEMA, &list, present)?;
        } else {
            output.write(shipped::text(name).unwrap_or_default())?;
        }
        return Ok(Exit::Good);
    }
    let profiles = shipped::names().map(|name| Ok(ProfileLine::new(shipped::named(name)?)));
    let list = ProfileList { profiles: profiles.collect::<anyhow::Result<_>>()? };
    output.print(SCHEMA, &list, present)?;
    Ok(Exit::Good)
}

fn present(list: &ProfileList) -> Document {
    let mut document = Document::new("Virtual cards");
    let left = Align::Left;
    let mut table = Table::new([
        ("profile", left),
        ("kind", left),
        ("user area", Align::Right),
        ("cells", left),
        ("mapping", left),
        ("what it is", left),
    ]);
    for profile in &list.profiles {
        table.row([
            Cell::from(profile.name.as_str()),
            Cell::from(profile.kind.as_str()),
            Cell::from(Bytes(profile.user_bytes).to_string()),
            Cell::from(profile.cell.as_str()),
            Cell::from(profile.mapping.as_str()),
            Cell::from(profile.description.as_str()),
        ]);
    }
    document.section("profiles", "Profiles").push(table).paragraph(
        "Any of them is a source: emmclab study sim:NAME, or sim:NAME@60% for one with 60 % of its life used. \
`emmclab sim profiles NAME` prints its file, to be changed and used by its path.",
    );
    document
}
