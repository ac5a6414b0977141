//! Examples of every command, in its help and its manual page, and the command line that has them.

mod simulated;

use clap::{Command, CommandFactory, FromArgMatches};

use super::Cli;

/// A command line that runs, and what it does.
#[derive(Debug)]
pub(crate) struct Example {
    /// Words of the command, e.g. `sim run`.
    pub(crate) path: &'static str,
    /// The whole line, as a shell takes it.
    pub(crate) line: &'static str,
    /// What it does.
    pub(crate) about: &'static str,
}

const fn example(path: &'static str, line: &'static str, about: &'static str) -> Example {
    Example { path, line, about }
}

const EXAMPLES: &[Example] = &[
    example("", "emmclab study /dev/mmcblk0", "a full report on a card, with recommendations"),
    example("", "cat ext_csd | emmclab health -", "how worn a card is, from a saved EXT_CSD"),
    example("", "emmclab help topics", "what sources, sizes, jobs and exit codes are"),
    example("list", "emmclab list", "the cards of this machine"),
    example("list", "emmclab list --sysroot rootfs --json", "the cards of a copied /sys, for a script"),
    example("show", "emmclab show /dev/mmcblk0", "all registers, decoded"),
    example(
        "show",
        "emmclab show ext_csd.hex --field SEC_COUNT --raw",
        "the raw value of one field of a saved EXT_CSD",
    ),
    example("show", "mmc extcsd read /dev/mmcblk0 | emmclab show -", "the output of mmc-utils"),
    example("snapshot", "emmclab snapshot /dev/mmcblk0 -o before.json", "save everything that can be read"),
    example("snapshot", "emmclab snapshot ext_csd.hex --with cid.txt -o card.json", "combine saved files of one card"),
    example("diff", "emmclab diff before.json /dev/mmcblk0", "the changes since the snapshot"),
    example("diff", "emmclab diff before.json after.json --persistent", "only persistent changes"),
    example("health", "emmclab health /dev/mmcblk0", "life used, reserve, forecast"),
    example("health", "emmclab health now.hex --since old.hex@2025-01-31T00:00:00Z", "end of life at the present rate"),
    example("check", "emmclab check /dev/mmcblk0", "one line and Nagios exit codes"),
    example("check", "emmclab check /dev/mmcblk0 -w 70 -c 90", "warn at 70 % of used life"),
    example("check", "emmclab check --all", "every card of this machine, the worst first"),
    example("check", "emmclab check --all -q", "for cron: silent if all are OK"),
    example("monitor", "emmclab monitor --once --ndjson", "one line of JSON for each card of this machine"),
    example("monitor", "emmclab monitor --append /var/lib/emmclab/samples.ndjson", "a line if something changed"),
    example("monitor", "emmclab monitor --metrics /run/node_exporter/emmc.prom", "for Prometheus' node_exporter"),
    example("plan hwpart", "emmclab plan hwpart /dev/mmcblk0 --enh-user 4GiB", "4 GiB of pSLC; nothing is sent"),
    example("plan hwpart", "emmclab plan hwpart ext_csd.hex --enh-user 50% --wrrel on", "half of what is possible"),
    example("plan hwpart", "emmclab plan hwpart ext_csd.hex --enh-user max -o plan.json", "all of it, saved"),
    example("plan wrrel", "emmclab plan wrrel /dev/mmcblk0 on -o plan.json", "reliable writes in the user area, saved"),
    example("plan boot", "emmclab plan boot /dev/mmcblk0 --from boot1 --ack on", "boot from the first boot area"),
    example(
        "plan boot-size",
        "emmclab plan boot-size /dev/mmcblk0 --boot 8MiB",
        "U-Boot's command for it; nothing is sent",
    ),
    example("plan boot", "emmclab plan boot /dev/mmcblk0 --switch -o plan.json", "A/B: boot from the other boot area"),
    example("plan bkops", "emmclab plan bkops /dev/mmcblk0 --auto on", "background operations by the card itself"),
    example(
        "plan cache",
        "emmclab plan cache /dev/mmcblk0 off -o plan.json",
        "without the volatile cache, until a reset",
    ),
    example("plan hwreset", "emmclab plan hwreset /dev/mmcblk0 enable -o plan.json", "the reset pin, for ever"),
    example("plan wp", "emmclab plan wp /dev/mmcblk0 --boot boot1 --as permanent", "the first boot area, for ever"),
    example(
        "plan wp",
        "emmclab plan wp /dev/mmcblk0 --user 0:64MiB --as power-on",
        "64 MiB until the next power cycle",
    ),
    example(
        "plan secure-removal",
        "emmclab plan secure-removal /dev/mmcblk0 overwrite",
        "one of the types that it offers",
    ),
    example("plan native-sectors", "emmclab plan native-sectors /dev/mmcblk0", "sectors of 4 KiB; all data is lost"),
    example(
        "plan production-state",
        "emmclab plan production-state /dev/mmcblk0 --enable manual --state pre-soldering-writes",
        "before preloaded data is written",
    ),
    example("plan set", "emmclab plan set /dev/mmcblk0 FW_CONFIG=1", "any setting; here: no firmware update any more"),
    #[cfg(feature = "bench")]
    example(
        "trim status",
        "emmclab trim status /dev/mmcblk0",
        "does deleted data reach the card, and if not, what stops it",
    ),
    #[cfg(feature = "bench")]
    example("trim status", "emmclab trim status --test /data", "whether the card obeys, by a file of ours"),
    #[cfg(feature = "bench")]
    example("advise system", "emmclab advise system / --for 1min", "what writes without need, who, and what it costs"),
    #[cfg(feature = "bench")]
    example(
        "advise worth",
        "emmclab advise worth samples.ndjson --split 2026-11-21T08:00:00Z",
        "is less written since then",
    ),
    #[cfg(feature = "bench")]
    example(
        "bus",
        "emmclab bus /dev/mmcblk0 --time 1min --lower",
        "is the bus clean at its clock, or at which lower one",
    ),
    #[cfg(feature = "bench")]
    example("trust", "emmclab trust /dev/mmcblk0 --test /data", "what speaks against the card, with a test by a file"),
    #[cfg(feature = "bench")]
    example("trust", "dmesg | emmclab trust --registers ext_csd.hex --log -", "from saved registers and a log"),
    #[cfg(feature = "twin")]
    example("advise layout", "emmclab advise layout /dev/mmcblk0", "lines for sfdisk, genimage, wic and mkfs"),
    #[cfg(feature = "bench")]
    example("trim run", "emmclab trim run /data --measure", "trim it now, and what that brings"),
    #[cfg(feature = "bench")]
    example("trim advise", "emmclab trim advise /data --write", "show and write the timer that trims it weekly"),
    #[cfg(feature = "bench")]
    example("apply", "emmclab apply --rehearse plan.json /dev/mmcblk0", "on a virtual card with the same registers"),
    #[cfg(feature = "bench")]
    example("apply", "emmclab apply plan.json /dev/mmcblk0", "for real; asks where it cannot be undone"),
    #[cfg(feature = "bench")]
    example("apply", "emmclab apply --verify plan.json /dev/mmcblk0", "after the power cycle: where it stands"),
    #[cfg(feature = "clone")]
    example("clone", "emmclab clone /dev/mmcblk0 -o card.clone", "what is allocated, with the boot areas"),
    #[cfg(feature = "clone")]
    example("clone", "emmclab clone /dev/mmcblk0 -o card.clone --resume", "continues one that was interrupted"),
    #[cfg(feature = "clone")]
    example("restore", "emmclab restore card.clone --check", "only reads the file"),
    #[cfg(feature = "clone")]
    example("restore", "emmclab restore card.clone /dev/mmcblk1 --destroy", "asks for the device's name"),
    #[cfg(feature = "clone")]
    example("erase", "emmclab erase /dev/mmcblk0", "what the card has, and what each would do; nothing is sent"),
    #[cfg(feature = "clone")]
    example(
        "erase",
        "emmclab erase /dev/mmcblk0 trim sanitize --destroy -o report.txt",
        "the user area, out of the flash too; asks for the name",
    ),
    #[cfg(feature = "clone")]
    example("erase", "emmclab erase /dev/mmcblk0 discard --partition 2 --destroy", "one partition"),
    #[cfg(feature = "clone")]
    example(
        "erase",
        "emmclab erase /dev/mmcblk0 trim --area boot1 --destroy",
        "a boot area; the others stay as they are",
    ),
    #[cfg(feature = "bench")]
    example("rpmb counter", "emmclab rpmb counter /dev/mmcblk0rpmb", "whether a key is programmed; needs no key"),
    #[cfg(feature = "bench")]
    example("rpmb read", "emmclab rpmb read /dev/mmcblk0rpmb 0 16 -o blocks.bin --key key.bin", "4 KiB, checked"),
    #[cfg(feature = "bench")]
    example("rpmb write", "emmclab rpmb write /dev/mmcblk0 0 blocks.bin --key key.bin --destroy", "asks for the name"),
    #[cfg(feature = "bench")]
    example("rpmb key", "emmclab rpmb key /dev/mmcblk0rpmb --key key.bin", "one-time; asks for the serial number"),
    #[cfg(feature = "bench")]
    example(
        "rpmb protect",
        "emmclab rpmb protect /dev/mmcblk0 on --key key.bin",
        "only the key's holder changes it then",
    ),
    #[cfg(feature = "bench")]
    example("ffu", "emmclab ffu /dev/mmcblk0 firmware.bin --for 15:M8G1GC", "for real; asks for the serial number"),
    #[cfg(feature = "bench")]
    example("lock status", "emmclab lock status /dev/mmcblk0", "whether the card is locked by a password"),
    #[cfg(feature = "bench")]
    example("lock off", "emmclab lock off /dev/mmcblk0 --password secret.txt", "until the next power-up"),
    #[cfg(feature = "bench")]
    example("lock on", "emmclab lock on /dev/mmcblk0 --password secret.txt", "now"),
    #[cfg(feature = "bench")]
    example("lock clear", "emmclab lock clear /dev/mmcblk0 --password secret.txt", "for good; also unlocks"),
    #[cfg(feature = "bench")]
    example("lock set", "emmclab lock set /dev/mmcblk0 --password secret.txt", "asks for the serial number"),
    #[cfg(feature = "bench")]
    example("lock force-erase", "emmclab lock force-erase /dev/mmcblk0 --destroy", "asks for the name"),
    example("study", "emmclab study /dev/mmcblk0", "a report on a card of this machine"),
    example("study", "emmclab study ext_csd.hex --with cid.txt", "the same from saved files"),
    #[cfg(feature = "html")]
    example("study", "emmclab study --demo -o report.html", "a worn virtual card, as an HTML page"),
    #[cfg(feature = "bench")]
    example("bench", "emmclab bench /dev/mmcblk0 --read-only", "read speed; writes nothing"),
    #[cfg(feature = "bench")]
    example("bench", "emmclab bench /mnt/data --suite iozone --rows 4,16384", "in a temporary file on a mounted card"),
    #[cfg(feature = "bench")]
    example("bench", "emmclab bench /dev/mmcblk1 --destroy --save-restore", "reads and writes; asks for confirmation"),
    #[cfg(feature = "bench")]
    example("probe", "emmclab probe /dev/mmcblk0", "what reads alone can show; writes nothing"),
    #[cfg(feature = "bench")]
    example("probe", "emmclab probe --from flashbench.txt", "what saved output of flashbench says"),
    #[cfg(all(feature = "bench", feature = "sim"))]
    example("probe", "emmclab probe sim:toshiba-7au --write --full", "everything, with the evidence"),
    #[cfg(all(feature = "bench", feature = "sim"))]
    example("bench", "emmclab bench sim:generic-8g@60% --suite trim", "the effect of trim on a virtual card"),
    #[cfg(feature = "bench")]
    example("compare", "emmclab compare before.json after.json", "two results side by side"),
    #[cfg(feature = "bench")]
    example(
        "compare",
        "emmclab compare mine.json ref:nine-cards-friendlyelec-emmc-8gb",
        "a result and a published one",
    ),
    #[cfg(feature = "trace")]
    example("trace record", "emmclab trace record -- dd if=/dev/mmcblk0 of=/dev/null bs=1M count=64", "one command"),
    #[cfg(feature = "trace")]
    example("trace record", "emmclab trace record --for 30s -o slow.dat", "whatever runs, for half a minute"),
    #[cfg(feature = "trace")]
    example("trace record", "emmclab trace record --live", "spans and top writers, every two seconds"),
    #[cfg(feature = "trace")]
    example("trace record", "emmclab trace record --at-boot", "how to record the next boot"),
    #[cfg(feature = "trace")]
    example("trace analyse", "emmclab trace analyse trace.dat", "a recording of trace-cmd"),
    #[cfg(feature = "trace")]
    example("trace analyse", "emmclab trace analyse sda.blktrace.*", "files of blktrace, one for each processor"),
    #[cfg(feature = "trace")]
    example("trace compare", "emmclab trace compare before.dat after.dat", "which span became longer"),
    #[cfg(feature = "trace")]
    example("trace export", "emmclab trace export trace.dat --perfetto -o trace.pftrace", "for ui.perfetto.dev"),
    #[cfg(feature = "trace")]
    example("trace export", "emmclab trace export trace.dat --fio-iolog -o trace.iolog", "for fio --read_iolog"),
    #[cfg(feature = "trace")]
    example("trace who", "emmclab trace who --for 30s", "who writes now, and into which files"),
    #[cfg(feature = "trace")]
    example("trace who", "emmclab trace who --light --log who.ndjson", "for weeks"),
    #[cfg(feature = "trace")]
    example("trace who", "emmclab trace who --log who.ndjson --since 7", "the last seven days of it"),
    #[cfg(feature = "twin")]
    example(
        "twin fit",
        "emmclab twin fit iozone.txt --kind sd -o mine.toml",
        "a profile with the speeds of a measured card",
    ),
    #[cfg(feature = "twin")]
    example(
        "twin fit",
        "emmclab twin fit iozone.txt --kind emmc --hold-out columns",
        "how well it predicts columns that it has not seen",
    ),
    #[cfg(feature = "twin")]
    example("twin check", "emmclab twin check mine.toml iozone.txt", "the error of every cell"),
    #[cfg(feature = "twin")]
    example("twin baseline", "emmclab twin baseline ref:nine-cards-sandisk-ultra-8gb", "what simple rules predict"),
    #[cfg(feature = "bench")]
    example("import", "emmclab import fio.json", "the output of fio"),
    #[cfg(feature = "bench")]
    example("import", "iozone -e -I -a -i 0 -i 1 | emmclab import -", "the output of iozone"),
    example("help", "emmclab help sizes", "a topic"),
    example("help", "emmclab help plan hwpart", "a command"),
    #[cfg(feature = "schema")]
    example("schema", "emmclab schema study > study.schema.json", "the schema of what `study --json` prints"),
    #[cfg(feature = "pages")]
    example("completions", "emmclab completions bash > emmclab.bash", "a script to source or to install"),
    #[cfg(feature = "pages")]
    example("man", "emmclab man man1", "all manual pages, in the folder man1"),
];

fn all() -> impl Iterator<Item = &'static Example> {
    EXAMPLES.iter().chain(simulated::EXAMPLES)
}

/// The examples of a command; a group of commands has those of all its commands.
pub(crate) fn examples(path: &str) -> impl Iterator<Item = &'static Example> {
    let is_inside =
        move |inside: &str| !path.is_empty() && inside.strip_prefix(path).is_some_and(|rest| rest.starts_with(' '));
    all().filter(move |example| example.path == path || is_inside(example.path))
}

/// The command line as it is parsed and shown: every command with its examples.
pub(crate) fn command() -> Command {
    with_examples(Cli::command(), "")
}

/// The parsed arguments.
///
/// Errors: as clap has them.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let matches = command().try_get_matches()?;
    Cli::from_arg_matches(&matches)
}

fn with_examples(command: Command, path: &str) -> Command {
    let mut text = String::new();
    for Example { line, about, .. } in examples(path) {
        let start = if text.is_empty() { "Examples:" } else { "" };
        text += &format!("{start}\n  {line}\n      {about}");
    }
    let command = if text.is_empty() { command } else { command.after_help(text) };
    let inside = |word: &str| if path.is_empty() { word.to_owned() } else { format!("{path} {word}") };
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.iter().fold(command, |command, name| command.mut_subcommand(name, |sub| with_examples(sub, &inside(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of every command that runs by itself.
    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name()).trim().to_owned();
            if sub.has_subcommands() {
                leaves(sub, &path, found);
            } else {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_command_has_examples_and_every_example_is_a_command() {
        let mut found = Vec::new();
        leaves(&Cli::command(), "", &mut found);
        for path in &found {
            assert!(examples(path).count() > 0, "{path} has no example");
        }
        for Example { path, line, about } in all() {
            assert!(path.is_empty() || found.iter().any(|leaf| leaf == path), "{path}");
            assert!(line.len() <= 90 && about.len() <= 60, "{line}: {about}");
            let words = line.rsplit("| ").next().unwrap_or(line).split(" > ").next().unwrap_or(line).split(' ');
            let words: Vec<&str> = words.collect();
            // `sim ctl card1 cut`: a card may stand between the words of a command.
            let mut rest = words.iter();
            assert!(
                words[0] == "emmclab"
                    && path.split(' ').filter(|word| !word.is_empty()).all(|word| rest.any(|other| *other == word)),
                "{line}"
            );
            assert!(command().try_get_matches_from(&words).is_ok(), "{line}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
