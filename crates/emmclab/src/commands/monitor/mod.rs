//! `monitor`: one sample of each card.
//!
//! Reads sysfs, /proc and debugfs. Absent on purpose: commands to the card, unless its vendor's report is asked for; a
//! daemon, because a timer needs no memory between two samples.

mod identity;
mod log;
mod vendor;

use anyhow::{Context, ensure};
use emmc_analysis::maker_health;
use emmc_analysis::sample::{Sample, SampleIdentity, metrics};
use emmc_port::{Activity, CardData, SourceError};

use crate::CommandResult;
use crate::cli::MonitorArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::save::{refuse_inputs, write_whole};
use crate::source;
use identity::Salt;

/// A card that is to be sampled.
struct Target {
    source: String,
    /// `mmcblk0`, if it is a card of a machine or of a copied tree.
    device: Option<String>,
}

pub(crate) fn run(args: &MonitorArgs, output: &mut Output) -> CommandResult {
    let salt = Salt::read(args.salt_file.as_deref())?;
    let outputs = [args.append.as_deref(), args.metrics.as_deref()];
    let inputs = args.more.files(args.source.as_deref());
    outputs.into_iter().flatten().try_for_each(|path| refuse_inputs(path, &inputs))?;
    let targets = targets(args)?;
    let mut samples = Vec::new();
    for target in &targets {
        match sample(args, &salt, target) {
            Ok(sample) => samples.push((target.name(), Some(sample))),
            // One card that cannot be read must not hide the others.
            Err(error) if targets.len() > 1 || args.metrics.is_some() => {
                output.error(&format!("{error:#}"));
                samples.push((target.name(), None));
            }
            Err(error) => return Err(error),
        }
    }
    let read: Vec<&Sample> = samples.iter().filter_map(|(_, sample)| sample.as_ref()).collect();
    if let Some(path) = &args.append {
        log::append(path, &read, args.at_least)?;
    }
    if let Some(path) = &args.metrics {
        write_whole(path, metrics(&samples).as_bytes(), true)?;
    }
    let is_elsewhere = args.append.is_some() || args.metrics.is_some();
    if args.ndjson || output.is_json() || !is_elsewhere {
        read.iter().try_for_each(|sample| output.write(&sample.line()))?;
    }
    Ok(if read.len() < samples.len() { Exit::Unusable } else { Exit::Good })
}

impl Target {
    fn name(&self) -> String {
        self.device.clone().unwrap_or_else(|| self.source.clone())
    }
}

fn targets(args: &MonitorArgs) -> anyhow::Result<Vec<Target>> {
    let sysroot = args.more.tree.sysroot.as_deref();
    if let Some(source) = &args.source {
        let is_of_machine = sysroot.is_some() || emmc_linux::is_card_name(source);
        let device = is_of_machine.then(|| emmc_linux::disk_name(source)).flatten();
        return Ok(vec![Target { source: source.clone(), device }]);
    }
    ensure!(args.more.with.is_empty() && args.more.vendor_reply.is_empty(), "--with and --vendor-reply need a SOURCE");
    let cards = emmc_linux::list(sysroot)?.cards;
    if cards.is_empty() {
        let place = sysroot.map_or_else(|| "this machine".into(), |folder| folder.display().to_string());
        let reason = "no card found: no /sys/block/mmcblkN".into();
        return Err(SourceError::Unsupported { name: place, reason }.into());
    }
    let target = |source: String| Target { device: emmc_linux::disk_name(&source), source };
    Ok(cards.into_iter().map(|card| target(card.device)).collect())
}

fn sample(args: &MonitorArgs, salt: &Salt, target: &Target) -> anyhow::Result<Sample> {
    let sysroot = args.more.tree.sysroot.as_deref();
    let is_live = sysroot.is_none() && target.device.is_some();
    let mut card = if is_live {
        let mut card = emmc_linux::LiveCard::new(&target.source).read_attributes()?;
        source::add(&mut card, &args.more)?;
        card
    } else {
        source::open_with(&target.source, &args.more)?
    };
    set_time(args, &mut card, is_live || target.source.starts_with("sim:"))?;
    if args.vendor_health {
        ensure!(is_live, "--vendor-health reads a live card; {} is a saved source", target.source);
        vendor::ask(&mut card, &target.source, &args.state);
    }
    let activity = match &target.device {
        Some(device) => emmc_linux::activity(device, sysroot)?,
        None => Activity::default(),
    };
    let identity = SampleIdentity {
        device_id: args.device_id.clone().or_else(|| activity.machine.id.as_ref().map(|id| salt.hash(id.as_bytes()))),
        cid_hash: card.cid.map(|cid| salt.hash(&cid.0)),
        emmclab: env!("CARGO_PKG_VERSION"),
    };
    let (reports, _) = maker_health::sorted(&card);
    let sample = Sample::of(&card, &reports, target.device.as_deref(), &activity, identity);
    sample.map_err(|error| anyhow::anyhow!("{error}, or --at gives it"))
}

/// A card that is read now has this time; a saved one has its own, or that of --at.
fn set_time(args: &MonitorArgs, card: &mut CardData, is_now: bool) -> anyhow::Result<()> {
    if let Some(at) = &args.at {
        return source::set_time(card, at);
    }
    if is_now {
        // Whole seconds. The crate's own messages are 60 KB of the board's binary.
        let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).ok().context("the clock")?;
        card.origins.iter_mut().take(1).for_each(|origin| origin.taken_at = Some(now.to_string()));
    }
    Ok(())
}
