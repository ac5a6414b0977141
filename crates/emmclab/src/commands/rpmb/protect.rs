//! `rpmb protect`: secure write protection, which the key's holder switches through the device configuration.

use emmc_port::rpmb::{self, RpmbError, RpmbKey};
use emmc_regs::rpmb::{ConfigByte, RpmbResult, SecureWriteProtection};
use serde::Serialize;

use super::target::{self, Target, unable};
use super::{RpmbDocument, State as Counted, key_file, nonce, state};
use crate::cli::{ProtectAction, RpmbProtectArgs};
use crate::save::Refused;

/// The state of secure write protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct State {
    /// SECURE_WP_EN: write protection changes only while that is allowed.
    pub(super) is_on: bool,
    /// SECURE_WP_MASK: it is allowed.
    pub(super) allows_changes: bool,
}

/// The byte that an action writes, and its value; `None`: it only reads.
fn change(action: ProtectAction) -> Option<(ConfigByte, bool)> {
    match action {
        ProtectAction::Status => None,
        ProtectAction::On => Some((ConfigByte::SecureWpModeEnable, true)),
        ProtectAction::Off => Some((ConfigByte::SecureWpModeEnable, false)),
        ProtectAction::Allow => Some((ConfigByte::SecureWpModeConfig, true)),
        ProtectAction::Deny => Some((ConfigByte::SecureWpModeConfig, false)),
    }
}

pub(super) fn run(args: &RpmbProtectArgs) -> anyhow::Result<RpmbDocument> {
    let name = args.target.target.as_str();
    let change = change(args.action);
    let mut warnings = Vec::new();
    let key = args.key.as_deref().map(|path| key_file::read(path, &mut warnings)).transpose()?;
    anyhow::ensure!(change.is_none() || key.is_some(), "--key is missing: only its holder changes the protection");
    target::with(name, |target| {
        if !target.has_protection {
            return Err(unable(name, "it has no secure write protection (SECURE_WP_INFO)"));
        }
        let mut document = RpmbDocument::new("protect", name, target, warnings);
        let before = match read(target, key.as_ref())? {
            Ok(before) => before,
            Err(RpmbError::Result(result)) if result.code() == RpmbResult::NO_KEY => {
                return Err(unable(name, "no key is programmed, without which nothing is protected"));
            }
            Err(error @ RpmbError::Port(_)) => return Err(unable(name, error)),
            Err(error) => {
                document.failed(&error);
                return Ok(document);
            }
        };
        document.has_key = Some(true);
        document.authenticated = Some(key.is_some());
        let found = match (change, &key) {
            (Some(change), Some(key)) => {
                if change.0 == ConfigByte::SecureWpModeConfig && !before.is_on {
                    let what = "secure write protection is off, so that nothing is to be allowed or denied; switch it";
                    return Err(Refused(format!("{name}: {what} on first; nothing was sent")).into());
                }
                set(target, key, change, before, &mut document)?
            }
            _ => Some(before),
        };
        document.protection = found.map(|found| State { is_on: found.is_on, allows_changes: found.allows_changes });
        Ok(document)
    })
}

fn read(target: &mut Target, key: Option<&RpmbKey>) -> anyhow::Result<Result<SecureWriteProtection, RpmbError>> {
    Ok(rpmb::protection(target, key, nonce()?))
}

/// Changes it, and reads it again; returns the state afterwards, if that is known.
fn set(
    target: &mut Target,
    key: &RpmbKey,
    (byte, value): (ConfigByte, bool),
    before: SecureWriteProtection,
    document: &mut RpmbDocument,
) -> anyhow::Result<Option<SecureWriteProtection>> {
    let wanted = match byte {
        ConfigByte::SecureWpModeEnable => SecureWriteProtection { is_on: value, ..before },
        ConfigByte::SecureWpModeConfig => SecureWriteProtection { allows_changes: value, ..before },
    };
    if wanted == before {
        return Ok(Some(before));
    }
    let counter = match state(target, Some(key))? {
        Ok(Counted::Counter(counter)) => counter,
        Ok(Counted::NoKey) => return Err(unable(&document.target, "no key is programmed")),
        Err(error) => return Err(unable(&document.target, format!("{error}; nothing was sent"))),
    };
    let done = rpmb::set_protection(target, key, counter, byte, value);
    // Whatever the card replied: what it has now counts.
    match (done, read(target, Some(key))?) {
        (_, Ok(found)) if found == wanted => {
            document.counter = state(target, Some(key))?.ok().and_then(|state| match state {
                Counted::Counter(counter) => Some(counter),
                Counted::NoKey => None,
            });
            Ok(Some(found))
        }
        (Err(error), Ok(found)) => {
            document.failed(&error);
            Ok(Some(found))
        }
        (Ok(()), Ok(found)) => {
            document.ended = "refused";
            document.reason = Some("the card reports success, and its state is another one".into());
            Ok(Some(found))
        }
        (Err(error), Err(_)) | (Ok(()), Err(error)) => {
            document.failed(&error);
            let word = crate::shell::word(document.target.as_ref()).unwrap_or_else(|| "TARGET".into());
            document.next.push("power the card off and on".into());
            document.next.push(format!("read the state: emmclab rpmb protect {word}"));
            Ok(None)
        }
    }
}
