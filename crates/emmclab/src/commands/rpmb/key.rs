//! `rpmb key`: programs the key, which is possible once.

use emmc_port::rpmb;

use super::target::{self, unable};
use super::{RpmbDocument, State, key_file, state};
use crate::cli::RpmbKeyArgs;
use crate::commands::apply::consent::{SerialQuestion, say};
use crate::save::Refused;

/// Programs it, and reads the counter with it.
pub(super) fn program(args: &RpmbKeyArgs, is_quiet: bool) -> anyhow::Result<RpmbDocument> {
    let name = args.target.target.as_str();
    let mut warnings = Vec::new();
    let key = key_file::read(&args.key.key, &mut warnings)?;
    target::with(name, |target| {
        let mut document = RpmbDocument::new("key", name, target, warnings);
        match state(target, None)? {
            Ok(State::NoKey) => {}
            Ok(State::Counter(_)) => {
                let what = format!("{name}: a key is programmed already, which cannot be changed; nothing was sent");
                return Err(Refused(what).into());
            }
            Err(error) => return Err(unable(name, format!("{error}; nothing was programmed"))),
        }
        let lost = [
            "the RPMB works with this key only, for the life of the card".to_owned(),
            "no command reads, changes or removes the key".to_owned(),
        ];
        if !is_quiet {
            let card = &target.card;
            let [product, serial] = [&card.product, &card.serial].map(|value| value.as_deref().unwrap_or("unknown"));
            say(&format!("{name}: {product}, serial number {serial}"));
            say("  the RPMB's key is programmed  one-time");
            lost.iter().for_each(|lost| say(&format!("  lost: {lost}")));
        }
        let question = SerialQuestion {
            target: name,
            card: &target.card,
            given: args.permanent.as_deref(),
            what: "programming the key cannot be reverted",
            lost: &lost,
            is_quiet,
        };
        let consent = question.ask().map_err(Refused)?;
        let done = rpmb::program_key(target, &key, consent);
        // Whatever the card replied: its counter, signed with the key, proves that the key is there.
        match (done, state(target, Some(&key))?) {
            (_, Ok(State::Counter(counter))) => {
                document.has_key = Some(true);
                document.counter = Some(counter);
                document.authenticated = Some(true);
            }
            (Err(error), Ok(State::NoKey)) => {
                document.has_key = Some(false);
                document.failed(&error);
            }
            (Ok(()), Ok(State::NoKey)) => {
                document.has_key = Some(false);
                document.ended = "not authentic";
                document.reason = Some("the card reports success, and has no key".into());
            }
            (Err(error), Err(_)) | (Ok(()), Err(error)) => {
                document.failed(&error);
                let file = crate::shell::word(args.key.key.as_os_str()).unwrap_or_else(|| "FILE".into());
                let word = crate::shell::word(name.as_ref()).unwrap_or_else(|| "TARGET".into());
                document.next.push("power the card off and on".into());
                document
                    .next
                    .push(format!("find out whether it has the key: emmclab rpmb counter {word} --key {file}"));
            }
        }
        Ok(document)
    })
}
