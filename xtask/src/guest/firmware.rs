//! `cargo xtask guest firmware`: a firmware starts the machine from a virtual card, without a kernel.
//!
//! A Linux guest writes a boot sector to a new card. Then a machine without any other disk starts from that card, once
//! with each controller: SeaBIOS (or the ROM of `--bios`) identifies it and reads the sector, which prints a line on
//! the serial port and ends the machine.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use emmc_lab::folder::RunFolder;

use crate::guest::rig::{self, Rig};
use crate::guest::server::{Controller, Emmclab, Pace, Server};
use crate::guest::trial::{self, Nobody, Options};

/// QEMU's SeaBIOS.
pub(crate) const SEABIOS: &str = "bios-256k.bin";

/// What the boot sector prints.
const LINE: &str = "started from the card";

/// Port of QEMU's device that ends the machine.
const EXIT_PORT: u8 = 0xf4;

/// Runs it with the given arguments: `--bios ROM`.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<u8> {
    let bios = match args {
        [] => SEABIOS,
        ["--bios", path] => path,
        _ => bail!("guest firmware: expected nothing or --bios ROM, not {args:?}"),
    };
    start_with_each(&rig::ready()?, &Emmclab::build()?, bios).map(|()| 0)
}

/// Starts the machine from a card behind each controller.
pub(crate) fn start_with_each(rig: &Rig, emmclab: &Emmclab, bios: &str) -> anyhow::Result<()> {
    let folder = RunFolder::new()?;
    let card = folder.path.join("card");
    emmclab.create(&card, "generic-8g")?;
    let octal: String = boot_sector().iter().map(|byte| format!("\\{byte:03o}")).collect();
    let script = format!(". /guest/library.sh\nwait_card\nprintf '{octal}' | dd of=/dev/mmcblk0 oflag=direct bs=512\n");
    let options = Options { controller: Some(Controller::Hs200), card: Some(card.clone()), ..Options::default() };
    let written = trial::run(rig, Some(emmclab), &options, &script, &[], &mut Nobody)?;
    ensure!(written.status == Some(0), "writing the boot sector:\n{}", written.output);
    for controller in [Controller::Hs200, Controller::NoCqe, Controller::Cqe] {
        let start = Instant::now();
        let output = start_from(rig, emmclab, bios, &card, controller, &folder.path)?;
        ensure!(output.contains(LINE), "{}: the firmware did not start the card: {output:?}", controller.name());
        println!("guest firmware ({}) ... ok ({:.1} s)", controller.name(), start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// What the machine printed on its serial port until it ended.
fn start_from(
    rig: &Rig,
    emmclab: &Emmclab,
    bios: &str,
    card: &Path,
    controller: Controller,
    folder: &Path,
) -> anyhow::Result<String> {
    let socket: PathBuf = folder.join("card.sock");
    let server = Server::start(emmclab, card, &socket, controller, Pace::Real, folder)?;
    let mut command = rig.qemu.command()?;
    command.args(["-machine", "q35,accel=tcg,memory-backend=memory", "-cpu", "max", "-m", "256M"]);
    command.args(["-object", "memory-backend-memfd,id=memory,size=256M,share=on", "-bios", bios]);
    // Without a card that starts, SeaBIOS restarts the machine after a second, which ends it.
    command.args(["-no-user-config", "-nodefaults", "-no-reboot", "-display", "none", "-boot", "reboot-timeout=1000"]);
    command.args(["-serial", "stdio", "-device", &format!("isa-debug-exit,iobase={EXIT_PORT:#x},iosize=1")]);
    command.arg("-device").arg(trial::device(&socket));
    let output = command.stdin(Stdio::null()).output().context("cannot start QEMU")?;
    server.stop()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text + &String::from_utf8_lossy(&output.stderr))
}

/// 16-bit code that prints [`LINE`] on the first serial port and ends the machine, as a boot sector of 512 bytes.
fn boot_sector() -> Vec<u8> {
    const CODE: [u8; 35] = [
        0xfa, // cli
        0x31, 0xc0, 0x8e, 0xd8, // ds = 0
        0xbe, 0x23, 0x7c, // si = the text, behind the code
        0xac, 0x84, 0xc0, // al = the next byte
        0x74, 0x12, // 0: to the end
        0x88, 0xc4, // ah = al
        0xba, 0xfd, 0x03, // dx = line status of the first serial port
        0xec, 0xa8, 0x20, 0x74, 0xfb, // until it takes a byte
        0x88, 0xe0, 0xba, 0xf8, 0x03, 0xee, // out the byte
        0xeb, 0xe9, // the next one
        0xe6, EXIT_PORT, // end the machine
        0xeb, 0xfe, // for ever
    ];
    let mut sector = CODE.to_vec();
    sector.extend_from_slice(LINE.as_bytes());
    sector.extend_from_slice(b"\r\n\0");
    sector.resize(510, 0);
    sector.extend_from_slice(&[0x55, 0xaa]);
    sector
}
