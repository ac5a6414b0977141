//! `cargo xtask guest u-boot`: a plan carried out by U-Boot's commands, and one by emmclab under Linux, each seen by
//! the other.
//!
//! U-Boot runs the commands that `emmclab plan` prints for it: hardware partitions, which `apply --verify` finds as
//! planned. A Linux guest then fills both boot areas and has the second one chosen; U-Boot shows and reads it, and
//! switches back.

pub(crate) mod build;
mod console;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, ensure};
use emmc_lab::folder::RunFolder;
use serde_json::Value;

use crate::guest::programs;
use crate::guest::rig::{self, Rig};
use crate::guest::server::{Controller, Emmclab, Pace, Server};
use crate::guest::trial::{self, Nobody, Options};
use console::Console;

const SLOTS: &str = include_str!("../../guest/uboot/slots.sh");

/// The board vendor's part: 14.8 GiB, of which half is left when all of it is enhanced.
const PROFILE: &str = "apalis-imx8qm-16g";

/// Where U-Boot reads to: free memory of the machine.
const MEMORY: &str = "1000000";

/// Runs it.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<u8> {
    ensure!(args.is_empty(), "guest u-boot: unknown argument {args:?}");
    both_ways(&rig::ready()?, &Emmclab::build()?).map(|()| 0)
}

/// The whole check.
pub(crate) fn both_ways(rig: &Rig, emmclab: &Emmclab) -> anyhow::Result<()> {
    let rom = rig::u_boot_ready()?;
    let start = Instant::now();
    let folder = RunFolder::new()?;
    let lab = Lab { rig, emmclab, rom: &rom, folder: &folder.path, card: &folder.path.join("card") };
    emmclab.create(lab.card, PROFILE)?;

    // Hardware partitions, by U-Boot.
    let (plan, commands) = lab.plan("hwpart", &["hwpart", "SOURCE", "--enh-user", "max", "--wrrel", "off"])?;
    lab.in_u_boot(|console| {
        console.expect("mmc info", &["User Capacity: 14.8 GiB", "Boot area 0 is not write protected"])?;
        let (last, before) = commands.split_last().context("no commands")?;
        for command in before {
            console.command(command)?;
        }
        console.expect(last, &["Partitioning successful"]).map(|_| ())
    })?;
    // The server's end is the power cycle.
    lab.verified(&plan)?;

    // A/B, by emmclab under Linux; the card's own choice seen by U-Boot, and changed by it.
    let user_bytes = lab.user_bytes()?;
    let options = Options {
        controller: Some(Controller::Hs200),
        card: Some(lab.card.to_path_buf()),
        pace: Pace::NoDelay,
        show: crate::guest::machine::Show::Nothing,
        ..Options::default()
    };
    let script = super::test::with_says(&format!("USER_BYTES={user_bytes}\n{SLOTS}"));
    let outcome = trial::run(rig, Some(emmclab), &options, &script, &programs::needed(&script)?, &mut Nobody)?;
    ensure!(outcome.status == Some(0), "filling the slots:\n{}", outcome.output);
    let (plan, commands) = lab.plan("boot", &["boot", "SOURCE", "--switch", "--ack", "on"])?;
    lab.in_u_boot(|console| {
        console.expect("mmc info", &["User Capacity: 7.3 GiB ENH", "User Enhanced Size: 7.3 GiB"])?;
        console.expect("mmc partconf 0", &["BOOT_ACK: 0x1", "BOOT_PARTITION_ENABLE: 0x2"])?;
        console.expect("mmc dev 0 2", &["OK"])?;
        console.expect(&format!("mmc read {MEMORY} 0 1"), &["1 blocks read: OK"])?;
        console.expect(&format!("md.b {MEMORY} 20"), &["slot 1"])?;
        console.expect("mmc dev 0 0", &["OK"])?;
        for command in &commands {
            console.command(command)?;
        }
        console.expect("mmc partconf 0", &["BOOT_PARTITION_ENABLE: 0x1"]).map(|_| ())
    })?;
    lab.verified(&plan)?;
    println!("guest u-boot ... ok ({:.1} s)", start.elapsed().as_secs_f64());
    Ok(())
}

/// A card, and who drives it.
struct Lab<'a> {
    rig: &'a Rig,
    emmclab: &'a Emmclab,
    rom: &'a Path,
    folder: &'a Path,
    card: &'a Path,
}

impl Lab<'_> {
    /// A plan for the card as it is; the name of its file, and U-Boot's commands.
    fn plan(&self, name: &str, words: &[&str]) -> anyhow::Result<(String, Vec<String>)> {
        let file = self.folder.join(format!("{name}.json")).display().to_string();
        let source = format!("sim:{}", self.card.display());
        let mut args = vec!["plan"];
        args.extend(words.iter().map(|word| if *word == "SOURCE" { source.as_str() } else { word }));
        args.extend(["--json", "-o", &file]);
        let output = self.emmclab.run(&args)?;
        ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let plan: Value = serde_json::from_slice(&std::fs::read(&file)?).context(file.clone())?;
        let commands = plan["commands"]["u_boot"]["commands"].as_array().context("no commands for U-Boot")?;
        // The first card of a machine with one.
        let commands: Vec<String> = commands
            .iter()
            .filter_map(Value::as_str)
            .map(|text| text.split(' ').map(|word| if word == "N" { "0" } else { word }).collect::<Vec<_>>().join(" "))
            .collect();
        ensure!(!commands.is_empty(), "no commands for U-Boot");
        Ok((file, commands))
    }

    /// `apply --verify` finds the card as planned.
    fn verified(&self, plan: &str) -> anyhow::Result<()> {
        let output = self.emmclab.run(&["apply", "--verify", plan, &self.card.to_string_lossy()])?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success() && text.contains("done"), "apply --verify {plan}:\n{text}");
        Ok(())
    }

    fn user_bytes(&self) -> anyhow::Result<u128> {
        Ok(self.emmclab.field(self.card, "SEC_COUNT")? * 512)
    }

    /// Serves the card to a machine whose firmware is U-Boot, until `work` is done.
    fn in_u_boot(&self, work: impl FnOnce(&mut Console) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let socket = self.folder.join("card.sock");
        let server = Server::start(self.emmclab, self.card, &socket, Controller::NoCqe, Pace::NoDelay, self.folder)?;
        let mut command = self.rig.qemu.command()?;
        command.args(["-machine", "pc,accel=tcg,memory-backend=memory", "-cpu", "max", "-m", "512M"]);
        command.args(["-object", "memory-backend-memfd,id=memory,size=512M,share=on", "-bios"]).arg(self.rom);
        command.args(["-no-user-config", "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"]);
        command.arg("-device").arg(trial::device(&socket));
        let mut console = Console::start(command)?;
        work(&mut console)?;
        console.end()?;
        server.stop()
    }
}
