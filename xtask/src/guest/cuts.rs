//! `cargo xtask guest cuts`: cuts power repeatedly while Linux writes, and compares the card's content with what it had
//! acknowledged.
//!
//! Two kinds of cut alternate: the card alone loses power, at a program or erase of its flash that the seed chooses,
//! and the kernel probes it again; or machine and server are killed, and restarted on what the server had saved. Three
//! of four cuts use a card with reliable writes; the others one without (WR_REL_SET), where only sectors are checked: a
//! file system cannot protect against what such a card may lose.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use emmc_lab::folder::RunFolder;

use crate::guest::machine::Show;
use crate::guest::oracle::{Counts, Oracle};
use crate::guest::rig::Rig;
use crate::guest::server::{Controller, Emmclab, Pace, Server};
use crate::guest::trial::{Host, Next, Options};
use crate::guest::{programs, trial};
use crate::metadata;

const SCRIPT: &str = include_str!("cuts.sh");

/// One of this many cuts kills machine and server.
const KILL_EVERY: u32 = 10;

/// One of this many cuts uses a card without reliable writes.
const UNRELIABLE_EVERY: u32 = 4;

/// Start of the first partition, where raw sectors are written. Unit: sectors.
const RAW_FIRST: u64 = 8192;

/// Most records of the writers before a cut.
const RECORDS_MAX: u64 = 300;

/// Most flash operations before an armed cut.
const OPERATIONS_MAX: u64 = 40;

/// The extent of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) cuts: u32,
    pub(crate) seed: u64,
    pub(crate) controller: Controller,
}

/// Cuts power, and prints a summary. Errors: a violated guarantee; anything that prevents it from continuing.
pub(crate) fn run(rig: &Rig, emmclab: &Emmclab, extent: Extent, show: Show) -> anyhow::Result<()> {
    let unreliable = extent.cuts / UNRELIABLE_EVERY;
    series(rig, emmclab, Extent { cuts: extent.cuts - unreliable, ..extent }, true, show)?;
    if unreliable > 0 {
        series(rig, emmclab, Extent { cuts: unreliable, ..extent }, false, show)?;
    }
    Ok(())
}

/// The cuts of one card.
fn series(rig: &Rig, emmclab: &Emmclab, extent: Extent, is_reliable: bool, show: Show) -> anyhow::Result<()> {
    let start = Instant::now();
    let folder = RunFolder::new()?;
    let card = folder.path.join("card");
    emmclab.create(&card, &profile(&folder.path, is_reliable)?.to_string_lossy())?;
    let is_set = emmclab.field(&card, "WR_REL_SET")? & 1 == 1;
    ensure!(is_set == is_reliable, "the card's WR_REL_SET is not what its profile says");
    let programs = programs::needed(SCRIPT)?;
    let mut cutter = Cutter::new(extent, is_reliable);
    while cutter.cuts < extent.cuts {
        let before = cutter.cuts;
        life(rig, emmclab, &card, extent.controller, show, &programs, &mut cutter)?;
        ensure!(cutter.cuts > before || cutter.is_over(), "the guest ended without a power cut");
    }
    let Counts { acknowledged, flushed, sectors_behind, sectors_damaged, synced, read } = cutter.oracle.counts;
    println!(
        "power cuts ({}, writes {}, seed {}): {} cuts in {:.0} s, {} of them kills; {acknowledged} writes acknowledged, {flushed} of them \
         flushed, {synced} files synced; {read} sectors and files read back, {sectors_behind} sectors behind what was \
         acknowledged but not flushed, {sectors_damaged} damaged as the model says, which \
         damaged {} units in all",
        extent.controller.name(),
        if is_reliable { "reliable" } else { "not reliable" },
        extent.seed,
        cutter.cuts,
        start.elapsed().as_secs_f64(),
        cutter.kills,
        cutter.damaged_units,
    );
    let violations = &cutter.oracle.violations;
    for violation in violations.iter().take(20) {
        println!("VIOLATION: {violation}");
    }
    ensure!(violations.is_empty(), "{} broken promises", violations.len());
    ensure!(
        acknowledged > 0 && flushed > 0 && (synced > 0 || !is_reliable),
        "nothing was acknowledged: this shows nothing"
    );
    Ok(())
}

/// The small card's profile, with or without reliable writes to the user area.
fn profile(folder: &Path, is_reliable: bool) -> anyhow::Result<PathBuf> {
    let path = metadata::workspace()?.root.join("xtask/guest/small.toml");
    if is_reliable {
        return Ok(path);
    }
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let other = folder.join("unreliable.toml");
    fs::write(&other, unreliable(&text))?;
    Ok(other)
}

/// The small card's profile without reliable writes to the user area: WR_REL_SET bit 0 is clear. `text` ends with its
/// registers.
fn unreliable(text: &str) -> String {
    format!("{text}WR_REL_SET = 0x1e\n")
}

/// One boot of the machine: until it is killed, or all cuts are done.
fn life(
    rig: &Rig,
    emmclab: &Emmclab,
    card: &Path,
    controller: Controller,
    show: Show,
    programs: &[(&str, PathBuf)],
    cutter: &mut Cutter,
) -> anyhow::Result<()> {
    let options = Options {
        controller: Some(controller),
        card: Some(card.to_path_buf()),
        pace: Pace::NoDelay,
        show,
        ..Options::default()
    };
    let outcome = trial::run(rig, Some(emmclab), &options, SCRIPT, programs, cutter)?;
    match outcome.status {
        None | Some(0) => Ok(()),
        Some(status) => bail!("the guest's script ended with {status}:\n{}", outcome.output),
    }
}

/// What the reader's records refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Writing,
    Reading,
}

/// The host's side: feeds the oracle, and decides when power is cut.
struct Cutter {
    extent: Extent,
    /// Whether an acknowledged write is safe from later ones.
    is_reliable: bool,
    /// Units damaged by the cuts anywhere on the card, as reported by the model.
    damaged_units: usize,
    oracle: Oracle,
    phase: Phase,
    /// The files that the reader found.
    found: BTreeSet<u64>,
    cuts: u32,
    kills: u32,
    /// Records of writers until the next cut.
    until_cut: u64,
    state: u64,
}

impl Cutter {
    fn new(extent: Extent, is_reliable: bool) -> Self {
        let state = extent.seed.wrapping_mul(2).wrapping_add(1);
        Self {
            extent,
            is_reliable,
            damaged_units: 0,
            oracle: Oracle::default(),
            phase: Phase::Reading,
            found: BTreeSet::new(),
            cuts: 0,
            kills: 0,
            until_cut: 0,
            state,
        }
    }

    fn is_over(&self) -> bool {
        self.cuts >= self.extent.cuts
    }

    /// Source: xorshift64*, S. Vigna.
    fn chance(&mut self, below: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }

    fn settings(&mut self) -> String {
        format!("{} {}", self.chance(1 << 30) + 1, self.oracle.next_number())
    }

    /// Tells the oracle which completed data the last cut damaged, as reported by the model.
    fn look_at_damage(&mut self, server: Option<&Server>) -> anyhow::Result<()> {
        if self.is_reliable {
            return Ok(());
        }
        let output = server.context("no card is served")?.control(&["state", "--json"])?;
        let state: serde_json::Value = serde_json::from_slice(&output.stdout).context("sim ctl state")?;
        let units = state["damaged_by_cut"].as_array().context("sim ctl state: no damaged_by_cut")?;
        self.damaged_units += units.len();
        let sectors_of = |unit: &serde_json::Value| {
            let first = unit["first"].as_u64()?.checked_sub(RAW_FIRST)?;
            (unit["area"] == "user").then_some(first..first + unit["sectors"].as_u64()?)
        };
        self.oracle.damaged(units.iter().filter_map(sectors_of).flatten().collect());
        Ok(())
    }

    fn cut(&mut self, server: &Server) -> anyhow::Result<Next> {
        self.cuts += 1;
        if self.cuts % KILL_EVERY == 0 {
            self.kills += 1;
            return Ok(Next::Kill);
        }
        let (operation, seed) = (1 + self.chance(OPERATIONS_MAX), self.chance(1 << 30));
        let (operation, seed) = (operation.to_string(), seed.to_string());
        let output = server.control(&["cut", "--at-operation", &operation, "--seed", &seed])?;
        ensure!(output.status.success(), "sim ctl cut: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(Next::Continue)
    }
}

impl Host for Cutter {
    fn told(&mut self, line: &str, server: Option<&Server>) -> anyhow::Result<Next> {
        if let Some(what) = line.strip_prefix("record ") {
            self.phase = Phase::Reading;
            if what == "settled" {
                let found = std::mem::take(&mut self.found);
                self.oracle.settle(&found);
            }
            return Ok(Next::Continue);
        }
        if ["boot ", "ran ", "exit "].iter().any(|&word| line.starts_with(word)) {
            return Ok(Next::Continue);
        }
        self.oracle.record(line)?;
        if self.phase == Phase::Reading {
            if let Some(name) = line.strip_prefix("v ").or(line.strip_prefix("b ")) {
                self.found.insert(name.split(' ').next().unwrap_or_default().parse()?);
            }
            return Ok(Next::Continue);
        }
        if self.until_cut > 0 {
            self.until_cut -= 1;
            if self.until_cut == 0 {
                return self.cut(server.context("no card is served")?);
            }
        }
        Ok(Next::Continue)
    }

    fn asked(&mut self, words: &str, server: Option<&Server>) -> anyhow::Result<String> {
        match words {
            // Whether the card holds data, the number of its next write, and the kind of write.
            "begin" => {
                self.look_at_damage(server)?;
                let what = if self.is_reliable { "files" } else { "sectors" };
                let has_data = u8::from(self.cuts > 0);
                Ok(format!("{has_data} {} {what}", self.oracle.next_number()))
            }
            "next" if self.is_over() => Ok("done".into()),
            "next" => {
                self.phase = Phase::Writing;
                self.until_cut = 1 + self.chance(RECORDS_MAX);
                Ok(self.settings())
            }
            "power" => {
                let output = server.context("no card is served")?.control(&["on"])?;
                ensure!(output.status.success(), "sim ctl on: {}", String::from_utf8_lossy(&output.stderr).trim());
                self.look_at_damage(server)?;
                Ok(String::new())
            }
            _ => bail!("the guest asks {words:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use emmc_card::profile::Profile;

    use super::*;

    #[test]
    fn the_unreliable_card_differs_from_the_small_one_by_that_register_alone() {
        let text = include_str!("../../guest/small.toml");
        let mut small = Profile::from_toml(text).unwrap();
        let other = Profile::from_toml(&unreliable(text)).unwrap();
        assert_eq!(small.registers.insert("WR_REL_SET".into(), 0x1e), None);
        assert_eq!(small, other);
    }
}
