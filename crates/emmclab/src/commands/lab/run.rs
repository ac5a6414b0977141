//! `lab run`: one script, one card, one kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use emmc_analysis::comparison::{Difference, compare};
use emmc_card::card::Card;
use emmc_card::condition::{Condition, HealthRegisters};
use emmc_card::nand::{Counters, StoredContent};
use emmc_lab::account::Phase;
use emmc_lab::cost;
use emmc_lab::folder::{RunFolder, copy_files};
use emmc_lab::guest::{GuestFiles, HOST_FOLDER, LAB};
use emmc_lab::kernel::Kernel;
use emmc_lab::run::{Accesses, Figure, Limits, REQUESTS, Ran, Run};
use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_serve::pci::Identity;
use emmc_serve::sdhci::HostFaults;
use emmc_serve::served::Served;
use serde::Serialize;

use super::orders::Orders;
use crate::CommandResult;
use crate::cli::{ControllerArg, DmaArg, FilesystemArg, LabRunArgs};
use crate::commands::sim;
use crate::exit::Exit;
use crate::output::Output;
use crate::virtual_card::{NamedProfile, folder, is_folder};

pub(crate) const SCHEMA: &str = "emmclab.lab-run/1";

/// The user's script and job in the guest.
const SCRIPT: &str = "lab-script";
const JOB: &str = "job.fio";
/// The largest script. Unit: bytes.
pub(super) const SCRIPT_BYTES_MAX: u64 = 1 << 20;
/// The kernel's buffer of events. Unit: KiB.
const TRACE_KIB: u32 = 65536;
/// The kernel's driver then has no scatter and gather. Source: Linux, drivers/mmc/host/sdhci.h,
/// SDHCI_QUIRK_BROKEN_ADMA.
const ONLY_SDMA: &str = "sdhci.debug_quirks=0x40";

/// What `lab run --json` prints. Times are simulated.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LabRun {
    /// The card, as named.
    pub(super) card: String,
    /// The version of the kernel.
    pub(super) kernel: Option<String>,
    /// The script's file.
    pub(super) script: String,
    /// The script's exit status.
    pub(super) status: u8,
    /// Until the last access of the card. Unit: seconds.
    pub(super) simulated_s: f64,
    /// What the script printed.
    pub(super) output: String,
    /// What the script reported with `figure`.
    pub(super) figures: Vec<Figure>,
    /// Results of fio: the job's, and those of files /out/*.json.
    pub(super) fio: Vec<FioResult>,
    /// What the card saw of each request, by phase and kind.
    pub(super) phases: Vec<Phase>,
    /// Accesses of the controller's registers.
    pub(super) accesses: Accesses,
    /// The flash before and after.
    pub(super) wear: BeforeAfter,
    /// Registers that changed, as between two sources of `diff`.
    pub(super) registers: Vec<Difference>,
    /// Events of the trace that did not fit into the kernel's buffer; absent without --trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trace_lost: Option<u64>,
}

/// A result of fio.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FioResult {
    /// Its file in /out.
    pub(super) file: String,
    /// As fio wrote it.
    pub(super) result: serde_json::Value,
}

/// Two states of the flash.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BeforeAfter {
    /// Before the machine started.
    pub(super) before: WearState,
    /// After it ended.
    pub(super) after: WearState,
    /// Units programmed over units that the host wrote, during the run; absent if it wrote nothing.
    pub(super) write_amplification: Option<f64>,
}

/// A state of the flash.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WearState {
    /// Mean of the erase counts of the good blocks.
    pub(super) erases_mean: f64,
    /// The highest erase count of a block.
    pub(super) erases_max: u32,
    /// Units that the host wrote, in the card's whole life.
    host_units: u64,
    /// Counters of the flash, of its whole life.
    nand: Counters,
    /// Health registers.
    registers: HealthRegisters,
}

impl WearState {
    fn of(card: &Card) -> Self {
        let Condition { wear, registers, ftl, nand, .. } = Condition::of(card.device());
        Self { erases_mean: wear.mean, erases_max: wear.max, host_units: ftl.host_units, nand, registers }
    }
}

pub(crate) fn run(args: &LabRunArgs, output: &mut Output) -> CommandResult {
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let document = measure(args, &stop)?;
    let status = document.status;
    output.print(SCHEMA, &document, super::present::run)?;
    Ok(Exit::Script(status))
}

/// The controller's identity.
///
/// Errors: the machine cannot have it, or not with this way of copying.
fn identity(args: &LabRunArgs) -> anyhow::Result<Identity> {
    let is_sdma = args.dma == DmaArg::Sdma;
    match args.controller {
        ControllerArg::Hs200 => bail!("--controller hs200: User-Mode Linux has no INTx; expected cqe or no-cqe"),
        ControllerArg::Cqe if is_sdma => {
            bail!("--dma sdma: command queueing has descriptors of its own; expected --controller no-cqe with it")
        }
        ControllerArg::Cqe => Ok(Identity::Gl9763e),
        ControllerArg::NoCqe => Ok(Identity::Gl9763eWithoutQueue),
    }
}

/// Whatever can be seen to be wrong before the machine starts.
///
/// Errors: in one line.
pub(super) fn check(args: &LabRunArgs) -> anyhow::Result<()> {
    identity(args).map(drop)
}

/// One run.
///
/// Errors: there is no result.
pub(super) fn measure(args: &LabRunArgs, stop: &Arc<AtomicBool>) -> anyhow::Result<LabRun> {
    let machine = &args.machine;
    let identity = identity(args)?;
    let path = &machine.script;
    let text = crate::input::text(path, SCRIPT_BYTES_MAX)?;
    let environment = environment(args);
    let kernel = Kernel::find(machine.kernel.as_deref())?;
    let run_folder = RunFolder::new().context("a folder for the run")?;
    let is_job = is_fio_job(path, &text);
    let job = if is_job { fio_job(&text, args.filesystem.is_some()) } else { String::new() };
    let script = if is_job { FIO_SCRIPT } else { &text };
    let texts = [(SCRIPT, script), (JOB, job.as_str())];
    let mut parameters = cost::parameters(args.cpu_ns);
    parameters.extend((args.dma == DmaArg::Sdma).then(|| ONLY_SDMA.into()));
    parameters.extend(machine.parameters.iter().cloned());
    let served = Arc::new(Served::open_driven(&card(args, &run_folder.path, stop)?)?);
    let (before, registers) = look(&served)?;
    let host_faults = HostFaults::default();
    let orders = Orders::new(&served, &host_faults, &args.card);
    let ran = emmc_lab::run::run(Run {
        served: Arc::clone(&served),
        identity,
        host_faults,
        kernel: &kernel,
        folder: &run_folder.path,
        files: GuestFiles { script: LAB, environment: &environment, texts: &texts, programs: &[] },
        memory_mib: machine.memory,
        parameters: &parameters,
        accesses: args.accesses.as_deref(),
        limits: Limits {
            patience: (machine.patience > 0).then(|| Duration::from_secs(machine.patience)),
            limit_ns: machine.limit.map(|limit| limit.saturating_mul(1_000_000_000)),
            stop,
        },
        control: &mut |words| orders.answer(words),
    });
    // An order of the script may have left the card without power.
    let after = look(&served);
    let finished = served.finish();
    let Ran { status, output, accesses, phases, figures } = ran?;
    finished?;
    let (after, registers_after) = after?;
    let host = run_folder.path.join(HOST_FOLDER);
    keep(args, &run_folder.path, &host)?;
    let lost = fs::read_to_string(host.join("trace-lost")).ok().and_then(|text| text.trim().parse().ok());
    let host_units = after.host_units - before.host_units;
    let programs = after.nand.unit_programs - before.nand.unit_programs;
    let write_amplification = (host_units > 0).then(|| programs as f64 / host_units as f64);
    Ok(LabRun {
        card: args.card.clone(),
        kernel: kernel.version(),
        script: path.display().to_string(),
        status,
        simulated_s: accesses.last_access_ns as f64 / 1e9,
        output,
        figures,
        fio: fio_results(&host.join("out"))?,
        phases,
        accesses,
        wear: BeforeAfter { before, after, write_amplification },
        registers: compare(&registers, &registers_after).differences,
        trace_lost: args.trace.as_ref().and(lost),
    })
}

/// The folder of the card: the named one, or that of a new card of the named profile.
fn card(args: &LabRunArgs, run_folder: &Path, stop: &Arc<AtomicBool>) -> anyhow::Result<PathBuf> {
    let named = folder(Path::new(&args.card));
    if named.to_str().is_some_and(is_folder) {
        ensure!(args.machine.age.is_none(), "--age: only a new card gets a history; use sim run on this one");
        return Ok(named.to_owned());
    }
    let profile = named_profile(&args.card)?;
    let path = run_folder.join("card");
    fs::create_dir(&path).with_context(|| path.display().to_string())?;
    let mut powered = profile.make(StoredContent::Orders, args.machine.seed)?;
    if let Some(name) = &args.machine.age {
        powered = sim::run::age(powered, &sim::run::load_job(name)?, stop).context("--age")?;
    }
    powered.create(&path, &profile.text)?;
    Ok(path)
}

/// The profile of a new card.
///
/// Errors: there is none; the machine cannot have such a card.
pub(super) fn named_profile(name: &str) -> anyhow::Result<NamedProfile> {
    let profile = NamedProfile::of_card(name.strip_prefix("sim:").unwrap_or(name))?;
    ensure!(profile.profile.kind == CardKind::Emmc, "{name}: an SD card; the lab's controller drives eMMC only");
    Ok(profile)
}

/// Flash and registers of the card. The machine does not run.
fn look(served: &Served) -> anyhow::Result<(WearState, CardData)> {
    Ok(served.with_card(|card, _| (WearState::of(card), card.device().card_data("the card")))?)
}

fn environment(args: &LabRunArgs) -> Vec<(String, String)> {
    let controller = if args.controller == ControllerArg::Cqe { "cqe" } else { "no-cqe" };
    let or_empty = |value: &Option<String>| value.clone().unwrap_or_default();
    let trace = if args.trace.is_some() { TRACE_KIB.to_string() } else { String::new() };
    let mut variables: Vec<(String, String)> = [
        ("CLOCK", "virtual".into()),
        ("DILATION", "1".into()),
        ("CONTROLLER", controller.into()),
        ("LAB_SCRIPT", SCRIPT.into()),
        ("LAB_FILESYSTEM", args.filesystem.map_or("", FilesystemArg::name).into()),
        ("LAB_MKFS", or_empty(&args.mkfs)),
        ("LAB_MOUNT", or_empty(&args.mount)),
        ("LAB_SCHEDULER", or_empty(&args.scheduler)),
        ("LAB_READ_AHEAD_KIB", args.read_ahead.map(|kib| kib.to_string()).unwrap_or_default()),
        ("LAB_MAX_REQUEST_KIB", args.max_request.map(|size| (size.0 / 1024).to_string()).unwrap_or_default()),
        ("LAB_TRACE", trace),
    ]
    .map(|(name, value): (&str, String)| (name.to_owned(), value))
    .into();
    variables.extend(args.env.iter().cloned());
    variables
}

/// The script of a fio job; the clock is the kernel's, because the processor's counter is the host's.
const FIO_SCRIPT: &str = "command fio --output-format=json --output=/out/fio.json /guest/job.fio\n";

fn is_fio_job(path: &Path, text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    path.extension().is_some_and(|extension| extension == "fio") || first.is_some_and(is_section)
}

/// `[name]`; a shell's test has a space after its bracket.
fn is_section(line: &str) -> bool {
    line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|name| !name.starts_with(' '))
}

/// The job with what it needs here: the clock, and the card if it names no file.
fn fio_job(text: &str, has_filesystem: bool) -> String {
    let names = |key: &str| text.lines().any(|line| line.split('=').next().is_some_and(|word| word.trim() == key));
    let place = match (names("filename") || names("directory"), has_filesystem) {
        (true, _) => "",
        (false, true) => "directory=/mnt/card\n",
        (false, false) => "filename=/dev/mmcblk0\n",
    };
    format!("[global]\nclocksource=clock_gettime\n{place}{text}")
}

/// The files of /out that are results of fio, by name.
fn fio_results(out: &Path) -> anyhow::Result<Vec<FioResult>> {
    let mut results = Vec::new();
    for entry in fs::read_dir(out).with_context(|| out.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let result: Option<serde_json::Value> =
            fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        if let Some(result) = result.filter(|result| result.get("fio version").is_some()) {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            results.push(FioResult { file, result });
        }
    }
    results.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(results)
}

/// Copies what the user asked for out of the run's folder.
fn keep(args: &LabRunArgs, run_folder: &Path, host: &Path) -> anyhow::Result<()> {
    let copy = |from: PathBuf, to: &Option<PathBuf>| match to {
        Some(to) => fs::copy(&from, to).map(drop).with_context(|| format!("{}: cannot write", to.display())),
        None => Ok(()),
    };
    copy(run_folder.join(REQUESTS), &args.requests)?;
    copy(host.join("trace"), &args.trace)?;
    match &args.out {
        Some(out) => copy_files(&host.join("out"), out).with_context(|| out.display().to_string()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fio_job_is_recognised_and_gets_a_place() {
        assert!(is_fio_job(Path::new("a.fio"), "") && is_fio_job(Path::new("a"), "# x\n\n[job]\nrw=read\n"));
        assert!(!is_fio_job(Path::new("a.sh"), "[ -b x ]\n"));
        assert!(!is_fio_job(Path::new("a.sh"), "#!/bin/sh\necho\n"));
        assert!(fio_job("[a]\nrw=read\n", false).contains("filename=/dev/mmcblk0\n"));
        assert!(fio_job("[a]\nrw=read\n", true).contains("directory=/mnt/card\n"));
        assert!(!fio_job("[a]\nfilename = /x\n", false).contains("mmcblk0"));
    }
}
