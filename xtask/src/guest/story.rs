//! `cargo xtask guest story`: a card that was never trimmed, in the lab, on ext4 and f2fs, and what must come of it.
//!
//! A 64 GB card with hours of history below a new filesystem: slow until one fstrim. The same card, which accepts trims
//! and ignores them, stays as it is: a run without the fstrim is the comparison, because overwrites of one file gain a
//! little by themselves.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use emmc_lab::folder::RunFolder;

use crate::guest::server::Emmclab;
use crate::metadata;

const CARD: &str = "odroid-64g";
const FILESYSTEMS: [&str; 2] = ["ext4", "f2fs"];
/// A write on the aged card takes at least as many times longer than after the fstrim.
const COLLAPSE_MIN: f64 = 3.0;
/// Of the units that the flash programs for others than the written one, at most this share remains after the fstrim.
const REMAINING_COPIES_MAX: f64 = 0.1;
/// How far reads may change, and how far the card that ignores trims may be from the run without one.
const SAME_PERCENT_MAX: f64 = 10.0;

/// What a run of the story measured.
#[derive(Clone, Copy, Debug)]
struct Measured {
    aged: Figures,
    trimmed: Figures,
}

#[derive(Clone, Copy, Debug)]
struct Figures {
    write_us: f64,
    amplification: f64,
    read_us: f64,
}

/// Runs it; prints each run and what differs from the story. The exit status is 1 if something does.
///
/// Errors: there is no result.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<u8> {
    ensure!(args.is_empty(), "guest story: unknown argument {args:?}");
    let emmclab = Emmclab::build()?;
    let root = metadata::workspace()?.root;
    let folder = RunFolder::new()?;
    let deaf = deaf_profile(Path::new(&root), &folder.path)?;
    let mut wrong = Vec::new();
    println!(
        "filesystem, card         fstrim   aged: write us  amplified  read us   after: write us  amplified  read us"
    );
    for filesystem in FILESYSTEMS {
        let hears = measure(&emmclab, Path::new(&root), CARD, filesystem, &["1"])?;
        let ignores = measure(&emmclab, Path::new(&root), &deaf, filesystem, &["0", "1"])?;
        let [hears] = hears.as_slice() else { anyhow::bail!("{} runs", hears.len()) };
        let [without, with] = ignores.as_slice() else { anyhow::bail!("{} runs", ignores.len()) };
        for (card, fstrim, run) in
            [(CARD, "yes", hears), ("ignores trims", "no", without), ("ignores trims", "yes", with)]
        {
            let Measured { aged, trimmed } = run;
            println!(
                "{filesystem:4}  {card:18} {fstrim:6} {:16.0} {:10.2} {:8.0} {:17.0} {:10.2} {:8.0}",
                aged.write_us,
                aged.amplification,
                aged.read_us,
                trimmed.write_us,
                trimmed.amplification,
                trimmed.read_us
            );
        }
        wrong.extend(judge(hears, without, with).into_iter().map(|what| format!("{filesystem}: {what}")));
    }
    wrong.iter().for_each(|what| println!("NOT THE STORY: {what}"));
    Ok(u8::from(!wrong.is_empty()))
}

/// The card's profile, with trims that have no effect; its path.
fn deaf_profile(root: &Path, folder: &Path) -> anyhow::Result<String> {
    let path = root.join(format!("crates/emmc-card/profiles/{CARD}.toml"));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let deaf = text.replacen("[ftl]\n", "[ftl]\ntrim_frees = false\n", 1);
    ensure!(deaf != text, "{}: no [ftl]", path.display());
    let path = folder.join("deaf.toml");
    fs::write(&path, deaf)?;
    Ok(path.display().to_string())
}

/// A run for each value of TRIM.
fn measure(
    emmclab: &Emmclab,
    root: &Path,
    card: &str,
    filesystem: &str,
    trims: &[&str],
) -> anyhow::Result<Vec<Measured>> {
    let example = |name: &str| root.join("docs/examples").join(name).display().to_string();
    let mut args: Vec<String> =
        ["lab", "sweep", "--json", "--card", card, "--filesystem", filesystem].map(Into::into).into();
    args.extend(["--mkfs", "nodiscard", "--mount", "nodiscard"].map(Into::into));
    args.extend(["--kernel".into(), root.join("target/guest/lab").display().to_string()]);
    args.extend(["--age".into(), example("aged-64g.json"), "--script".into(), example("trim-story.sh")]);
    args.extend(trims.iter().flat_map(|trim| ["--env".into(), format!("TRIM={trim}")]));
    let output = emmclab.run(&args)?;
    ensure!(output.status.success(), "lab sweep: {}", String::from_utf8_lossy(&output.stderr).trim());
    let sweep: serde_json::Value = serde_json::from_slice(&output.stdout).context("lab sweep --json")?;
    sweep["runs"].as_array().context("lab sweep --json: no runs")?.iter().map(measured).collect()
}

fn measured(run: &serde_json::Value) -> anyhow::Result<Measured> {
    let figures = run["result"]["figures"].as_array().with_context(|| format!("no result: {}", run["error"]))?;
    let figure = |name: &str| {
        let found = figures.iter().find(|figure| figure["name"] == name).and_then(|figure| figure["value"].as_f64());
        found.with_context(|| format!("the script reports no figure {name:?}"))
    };
    let of = |phase: &str| -> anyhow::Result<Figures> {
        Ok(Figures {
            write_us: figure(&format!("{phase}: write us"))?,
            amplification: figure(&format!("{phase}: amplification"))?,
            read_us: figure(&format!("{phase}: read us"))?,
        })
    };
    Ok(Measured { aged: of("aged")?, trimmed: of("trimmed")? })
}

/// What is not the story: of the card, and of the one that ignores trims without and with the fstrim.
fn judge(hears: &Measured, without: &Measured, with: &Measured) -> Vec<String> {
    let mut wrong = Vec::new();
    let collapse = hears.aged.write_us / hears.trimmed.write_us;
    if !(COLLAPSE_MIN..f64::MAX).contains(&collapse) {
        wrong.push(format!("one fstrim makes writes {collapse:.1} times as fast, expected {COLLAPSE_MIN} or more"));
    }
    let (aged, trimmed) = (hears.aged.amplification, hears.trimmed.amplification);
    if trimmed - 1.0 > REMAINING_COPIES_MAX * (aged - 1.0) {
        wrong.push(format!("the flash still programs {trimmed} units for one after it, {aged} before"));
    }
    let mut same = |what: &str, a: f64, b: f64| {
        let percent = (a / b - 1.0) * 100.0;
        if percent.abs() > SAME_PERCENT_MAX {
            wrong.push(format!("{what}: {a:.2} and {b:.2}, {percent:+.1} %"));
        }
    };
    same("reads before and after it", hears.aged.read_us, hears.trimmed.read_us);
    same("a card that ignores trims, with one and without, us", with.trimmed.write_us, without.trimmed.write_us);
    same("the same, amplification", with.trimmed.amplification, without.trimmed.amplification);
    let recovery = with.trimmed.write_us / hears.trimmed.write_us;
    if recovery < COLLAPSE_MIN {
        wrong.push(format!("a card that ignores trims is only {recovery:.1} times slower after one"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(aged_us: f64, trimmed_us: f64, amplification: f64) -> Measured {
        let figures = |write_us, amplification| Figures { write_us, amplification, read_us: 200.0 };
        Measured { aged: figures(aged_us, 10.0), trimmed: figures(trimmed_us, amplification) }
    }

    #[test]
    fn what_is_not_the_story_is_named() {
        let (hears, deaf) = (run(990.0, 198.0, 1.1), run(1600.0, 1200.0, 13.0));
        assert!(judge(&hears, &deaf, &run(1600.0, 1230.0, 13.2)).is_empty());
        assert_eq!(judge(&run(990.0, 500.0, 1.1), &deaf, &deaf).len(), 2);
        assert_eq!(judge(&run(990.0, 198.0, 2.0), &deaf, &deaf).len(), 1);
        assert_eq!(judge(&hears, &deaf, &run(1600.0, 198.0, 1.1)).len(), 3);
    }
}
