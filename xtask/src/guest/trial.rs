//! One trial: a card, its server, a machine with it, a script inside, and what is checked when all are off.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::guest::folder::Folder;
use crate::guest::machine::{Machine, Outcome, Setup, Show, last_lines};
use crate::guest::packages;
use crate::guest::rig::Rig;
use crate::guest::server::{Controller, Emmclab, Pace, Server};

/// What it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// None: no card, unless the further arguments for QEMU have one.
    pub(crate) controller: Option<Controller>,
    /// The folder of a card that exists.
    pub(crate) card: Option<PathBuf>,
    /// The profile of a card that is made for this trial.
    pub(crate) profile: String,
    pub(crate) pace: Pace,
    pub(crate) memory_mib: u32,
    /// Where the files go that the script leaves in /out.
    pub(crate) out: Option<PathBuf>,
    pub(crate) show: Show,
    /// Further arguments for QEMU.
    pub(crate) qemu: Vec<OsString>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controller: None,
            card: None,
            profile: "generic-8g".into(),
            pace: Pace::Real,
            // Enough for the whole first file system and the tools.
            memory_mib: 512,
            out: None,
            show: Show::Output,
            qemu: Vec::new(),
        }
    }
}

/// A field of the card's registers that the script says must have a value when all is over.
struct Check {
    field: String,
    value: u128,
}

/// Runs it; the script's exit status. What it says on the control channel and is not for us goes to `told`.
pub(crate) fn run(
    rig: &Rig,
    emmclab: Option<&Emmclab>,
    options: &Options,
    script: &str,
    programs: &[(&str, PathBuf)],
) -> anyhow::Result<Outcome> {
    let folder = Folder::new()?;
    let card = options.card.clone().unwrap_or_else(|| folder.path.join("card"));
    let mut qemu = options.qemu.clone();
    let mut server = None;
    match (options.controller, emmclab) {
        (Some(Controller::Qemu), _) => qemu.extend(qemus_own(&folder.path)?),
        (Some(controller), Some(emmclab)) => {
            if options.card.is_none() {
                emmclab.create(&card, &options.profile)?;
            }
            let socket = folder.path.join("card.sock");
            server = Some(Server::start(emmclab, &card, &socket, controller, options.pace, &folder.path)?);
            qemu.extend(["-device".into(), device(&socket)]);
        }
        (Some(_), None) => bail!("a card without the program that serves it"),
        (None, _) => {}
    }
    let controller = options.controller.map_or("none", Controller::name);
    let environment = [format!("CONTROLLER={controller}"), dilation(options.pace)];
    let setup = Setup {
        rig,
        folder: &folder.path,
        script,
        environment: &environment,
        programs,
        memory_mib: options.memory_mib,
        qemu: &qemu,
        show: options.show,
    };
    let mut machine = Machine::start(&setup)?;
    let checks = listen(&mut machine, server.as_ref())?;
    let outcome = machine.finish()?;
    if let Some(out) = &options.out {
        unpack(&folder.path.join("files.tar"), out)?;
    }
    if outcome.status.is_none() {
        bail!("the guest stopped before the script ended:\n{}", last_lines(&folder.path.join("console")));
    }
    if let Some(server) = server {
        server.stop().with_context(|| last_lines(&folder.path.join("serve")))?;
    }
    for check in checks {
        let emmclab = emmclab.context("a check of a card without the program that shows it")?;
        let found = emmclab.field(&card, &check.field)?;
        ensure!(found == check.value, "the card's {} is {found:#x}, expected {:#x}", check.field, check.value);
        println!("ok: afterwards the card's {} is {found:#x}", check.field);
    }
    Ok(outcome)
}

/// Listens to the guest until it is off.
fn listen(machine: &mut Machine, server: Option<&Server>) -> anyhow::Result<Vec<Check>> {
    let mut checks = Vec::new();
    while let Some(line) = machine.told()? {
        if let Some(words) = line.strip_prefix("ask ") {
            let answer = answer(words, server)?;
            machine.tell(&answer)?;
        } else if let Some(words) = line.strip_prefix("card ") {
            let (field, value) = words.split_once(' ').with_context(|| format!("the guest says {line:?}"))?;
            let value = value.parse().with_context(|| format!("the guest says {line:?}"))?;
            checks.push(Check { field: field.into(), value });
        }
    }
    Ok(checks)
}

/// What the host answers: a status, the number of lines, and the lines.
fn answer(words: &str, server: Option<&Server>) -> anyhow::Result<String> {
    let words: Vec<&str> = words.split(' ').collect();
    let (status, text) = match (words.as_slice(), server) {
        (["ctl", rest @ ..], Some(server)) => {
            let output = server.control(rest)?;
            let text = [output.stdout, output.stderr].concat();
            (output.status.code().unwrap_or(255), String::from_utf8_lossy(&text).into_owned())
        }
        (["ctl", ..], None) => (1, "no card is served".into()),
        _ => (2, format!("the host cannot {}", words.join(" "))),
    };
    let lines: Vec<&str> = text.lines().collect();
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Ok(format!("{status} {}\n{body}", lines.len()))
}

fn dilation(pace: Pace) -> String {
    let times = match pace {
        Pace::Dilated(times) => times,
        Pace::Real => 1,
        Pace::NoDelay => 0,
    };
    format!("DILATION={times}")
}

/// Our card as QEMU is told of it.
fn device(socket: &Path) -> OsString {
    let address = serde_json::json!({"type": "unix", "path": socket.to_string_lossy()});
    serde_json::json!({"driver": "vfio-user-pci", "socket": address}).to_string().into()
}

/// QEMU's own controller with its own card of 256 MiB.
fn qemus_own(folder: &Path) -> anyhow::Result<Vec<OsString>> {
    const BOOT_BYTES: u64 = 2 << 20;
    const RPMB_BYTES: u64 = 128 << 10;
    let image = folder.join("emmc.img");
    File::create(&image)?.set_len((256 << 20) + 2 * BOOT_BYTES + RPMB_BYTES).context("an image of QEMU's card")?;
    let drive = format!("if=none,id=emmc,format=raw,cache=unsafe,file={}", image.display());
    let card = format!("emmc,drive=emmc,boot-partition-size={BOOT_BYTES},rpmb-partition-size={RPMB_BYTES}");
    Ok(["-device", "sdhci-pci", "-drive", &drive, "-device", &card].map(OsString::from).to_vec())
}

/// Unpacks what the guest left.
fn unpack(files: &Path, out: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    if fs::metadata(files).is_ok_and(|metadata| metadata.len() > 0) {
        packages::run(Command::new("tar").arg("--extract").arg("--file").arg(files).arg("--directory").arg(out))?;
    }
    Ok(())
}
