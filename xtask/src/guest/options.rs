//! The options of a trial, from a command line or from the head of a guest script.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};

use crate::guest::machine::Show;
use crate::guest::server::{Controller, Pace};
use crate::guest::trial::{ClockKind, Options};

/// Parses them; returns the remaining words too.
pub(crate) fn parse(args: &[&str]) -> anyhow::Result<(Options, Vec<String>)> {
    let mut options = Options::default();
    let mut rest = Vec::new();
    let mut has_card = false;
    let (mut shift, mut cpu_ns) = (None, 0.0);
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        let mut value = || args.next().copied().with_context(|| format!("{arg}: expected a value after it"));
        match arg {
            "--controller" => options.controller = Some(Controller::named(value()?)?),
            "--card" => options.card = Some(PathBuf::from(value()?)),
            "--profile" => {
                options.profile = value()?.into();
                has_card = true;
            }
            "--second" => options.second = Some(value()?.into()),
            "--age" => options.age = Some(value()?.into()),
            "--dilate" => options.pace = Pace::Dilated(value()?.parse().context("--dilate: expected a whole number")?),
            "--clock" => {
                options.clock = match value()? {
                    "wall" => ClockKind::Wall,
                    "virtual" => ClockKind::Virtual { shift: shift.unwrap_or(0) },
                    other => bail!("--clock {other}: expected wall or virtual"),
                };
            }
            "--twice" => options.twice = true,
            "--both" => options.both = true,
            "--in-turn" => options.in_turn = true,
            "--ns-per-instruction" => shift = Some(shift_of(value()?)?),
            "--no-delay" => options.pace = Pace::NoDelay,
            "--processors" => {
                let number = value()?.parse().context("--processors: expected a number")?;
                ensure!((1..=8).contains(&number), "--processors {number}: expected 1 to 8");
                options.processors = number;
            }
            "--memory" => options.memory_mib = value()?.parse().context("--memory: expected a number of MiB")?,
            "--out" => options.out = Some(value()?.into()),
            "--cpu-ns" => cpu_ns = value()?.parse().context("--cpu-ns: expected nanoseconds for an instruction")?,
            "--uml" => options.uml = true,
            "--kernel" => options.kernel = Some(value()?.into()),
            "--accesses" => options.accesses = Some(value()?.into()),
            "--console" => options.show = Show::Console,
            "--" => options.qemu = args.by_ref().map(OsString::from).collect(),
            _ if arg.starts_with('-') => bail!("unknown option {arg}"),
            _ => rest.push(arg.to_string()),
        }
    }
    ensure!(
        options.age.is_none() || options.card.is_none(),
        "--age and --card: only a card that is made for this is aged"
    );
    ensure!(!has_card || options.card.is_none(), "--profile and --card: one card is enough");
    if let Some(shift) = shift {
        ensure!(options.clock != ClockKind::Wall, "--ns-per-instruction: only --clock virtual has it");
        options.clock = ClockKind::Virtual { shift };
    }
    ensure!(
        options.clock == ClockKind::Wall || options.pace == Pace::Real,
        "--clock virtual: there --dilate and --no-delay have no meaning"
    );
    ensure!(options.uml || options.accesses.is_none(), "--accesses: only --uml has it");
    ensure!(options.uml || options.kernel.is_none(), "--kernel: only --uml has it");
    ensure!(
        options.second.is_none() || options.clock != ClockKind::Wall && !options.uml,
        "--second: only QEMU with --clock virtual has a second card"
    );
    ensure!(options.uml || cpu_ns == 0.0, "--cpu-ns: only --uml has it, QEMU has --ns-per-instruction");
    options.qemu.extend(emmc_lab::cost::parameters(cpu_ns));
    if options.uml {
        ensure!(shift.is_none(), "--uml: the processor's work is free, or as the kernel's parameters cost_... say");
        ensure!(options.processors == 1, "--uml: User-Mode Linux in simulated time has one processor");
        ensure!(options.pace == Pace::Real, "--uml: there --dilate and --no-delay have no meaning");
        let controller = *options.controller.get_or_insert(Controller::Cqe);
        ensure!(
            matches!(controller, Controller::Cqe | Controller::NoCqe),
            "--uml: User-Mode Linux has no INTx, so --controller is cqe or no-cqe"
        );
    }
    ensure!(
        !options.twice || (options.uml || options.clock != ClockKind::Wall) && options.card.is_none(),
        "--twice: only --clock virtual repeats itself, with a new card for each run"
    );
    ensure!(
        !options.both
            || options
                == Options {
                    both: true,
                    controller: options.controller,
                    profile: options.profile.clone(),
                    in_turn: options.in_turn,
                    ..Options::default()
                },
        "--both: it has the clocks of QEMU and of User-Mode Linux, and new cards"
    );
    if has_card || options.card.is_some() {
        options.controller.get_or_insert(Controller::Cqe);
    }
    Ok((options, rest))
}

/// The shift of `-icount`.
fn shift_of(text: &str) -> anyhow::Result<u8> {
    let shifts = (0u8..=10).find(|shift| (1u32 << shift).to_string() == text);
    shifts.with_context(|| format!("--ns-per-instruction {text}: expected 1, 2, 4, 8, 16 or a higher power of two"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed() {
        let args = ["--profile", "p", "--memory", "256", "a.sh", "--dilate", "7", "--", "-device", "x"];
        let (found, rest) = parse(&args).unwrap();
        let expected = Options {
            profile: "p".into(),
            controller: Some(Controller::Cqe),
            memory_mib: 256,
            pace: Pace::Dilated(7),
            qemu: vec!["-device".into(), "x".into()],
            ..Options::default()
        };
        assert_eq!((found, rest), (expected, vec!["a.sh".to_string()]));
        assert_eq!(parse(&["--controller", "hs200"]).unwrap().0.controller, Some(Controller::Hs200));
        for bad in [
            &["--memory"][..],
            &["--memory", "x"],
            &["--other"],
            &["--controller", "x"],
            &["--dilate", "-1"],
            &["--card", "a", "--profile", "b"],
            &["--card", "a", "--age", "b"],
            &["--clock", "sun"],
            &["--uml", "--controller", "hs200"],
            &["--uml", "--dilate", "2"],
            &["--uml", "--processors", "2"],
            &["--processors", "0"],
            &["--uml", "--clock", "virtual", "--ns-per-instruction", "2"],
            &["--accesses", "x"],
            &["--kernel", "x"],
            &["--twice"],
            &["--both", "--uml"],
            &["--both", "--processors", "2"],
            &["--clock", "virtual", "--no-delay"],
            &["--ns-per-instruction", "2"],
            &["--clock", "virtual", "--ns-per-instruction", "3"],
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
