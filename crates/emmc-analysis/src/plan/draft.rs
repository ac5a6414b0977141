//! From wanted bits to a plan: each byte by the field table, all together by the rules between registers.

use emmc_port::CardData;
use emmc_regs::csd::{Csd, mmc};
use emmc_regs::ext_csd::{ByteWrite, ExtCsd, Field, Forbidden, field_at, reg};
use emmc_regs::ocr::Ocr;
use emmc_regs::{CardKind, Persistence};
use emmc_units::{Bytes, SECTOR_BYTES, Sectors};

use super::commands::commands;
use super::describe::{describe, expected};
use super::document::{Capacity, CapacityOf, CardIdentity, GroupStep, Objection, Plan, PowerCycle, RegisterStep, Step};
use super::groups::Protection;
use super::request::{Request, WpRange};
use super::rules::{Change, boot_wp_status, broken, objection, unknown};
use super::setting::Wanted;
use crate::hwpart::Certainty;

/// SEC_COUNT above which a part is sector addressed: 2 GiB.
const BYTE_ADDRESSED_SECTORS_MAX: u64 = 4_194_304;

/// B_PWR_WP_EN and B_PERM_WP_EN.
const BOOT_WP_ENABLE: u8 = 5;

/// Plans a change. It never fails and never sends anything: an obstacle is a refusal.
pub fn plan(card: &CardData, request: &Request) -> Plan {
    let mut draft = Draft::new(card);
    if draft.refusals.is_empty() {
        draft.add(&request.wanted());
        if let Request::WpUser { range, protection } = request {
            draft.groups(card, *range, *protection);
        }
        draft.add(&request.wanted_after());
        draft.judge();
    }
    draft.finish(card, request)
}

struct Draft {
    old: ExtCsd,
    new: ExtCsd,
    rev: Option<u8>,
    refusals: Vec<Objection>,
    unknown: Vec<String>,
    steps: Vec<Step>,
}

impl Draft {
    fn new(card: &CardData) -> Self {
        let old = card.ext_csd.clone().unwrap_or(ExtCsd::unknown());
        let mut refusals = Vec::new();
        if card.kind == Some(CardKind::Sd) {
            let what = "an SD card has no EXT_CSD: it has none of these settings";
            refusals.push(objection("sd-card", what, vec!["card kind is SD".into()]));
        }
        let rev = old.byte(reg::EXT_CSD_REV);
        let unknown = if rev.is_none() { vec![reg::EXT_CSD_REV.to_string()] } else { Vec::new() };
        Self { new: old.clone(), old, rev, refusals, unknown, steps: Vec::new() }
    }

    /// Bits of the same byte that follow each other are one write.
    fn add(&mut self, wanted: &[Wanted]) {
        let mut merged: Vec<Wanted> = Vec::new();
        for next in wanted.iter().filter(|wanted| wanted.mask != 0) {
            match merged.last_mut().filter(|last| last.offset == next.offset && last.passing == next.passing) {
                Some(last) => (last.mask, last.value) = (last.mask | next.mask, last.value & !next.mask | next.value),
                None => merged.push(*next),
            }
        }
        for wanted in &merged {
            self.by_duration(wanted).iter().for_each(|part| self.add_byte(part));
        }
    }

    /// Bits that outlast a power cycle and bits that do not are two steps, so that the registers show each; the bits of
    /// BOOT_WP select and enable together.
    fn by_duration(&self, wanted: &Wanted) -> Vec<Wanted> {
        let (Some(field), Some(old)) = (field_at(wanted.offset), self.new.byte(wanted.offset)) else {
            return vec![*wanted];
        };
        let changed = (old ^ wanted.value) & wanted.mask;
        if field == reg::BOOT_WP && changed & BOOT_WP_ENABLE != 0 {
            return vec![*wanted];
        }
        let index = wanted.offset - field.offset;
        let is_volatile = |bit: u8| field.persistence_of_bit(index, bit).is_volatile();
        let volatile =
            (0..8).filter(|bit| changed >> bit & 1 == 1 && is_volatile(*bit)).fold(0, |mask, bit| mask | 1 << bit);
        if volatile == 0 || volatile == changed {
            return vec![*wanted];
        }
        let part = |mask: u8| Wanted { mask, value: wanted.value & mask, ..*wanted };
        vec![part(wanted.mask & !volatile), part(volatile)]
    }

    fn add_byte(&mut self, wanted: &Wanted) {
        let Some(field) = field_at(wanted.offset) else { return };
        // Where the byte is whole, reserved bits that are set stay as they are.
        let (Some(old), Some(rev)) = (self.new.byte(wanted.offset), self.rev) else {
            // What no write reaches is refused for that, whatever it holds.
            match ByteWrite::new(wanted.offset, !wanted.value, wanted.value, self.rev.unwrap_or(u8::MAX)) {
                Err(forbidden @ (Forbidden::OutOfReach { .. } | Forbidden::Action { .. })) => self.forbid(forbidden),
                _ => self.unknown.push(field.to_string()),
            }
            return;
        };
        let new = old & !wanted.mask | wanted.value & wanted.mask;
        if old == new && !wanted.passing {
            // Nothing to write, but a byte that cannot be written is no setting.
            if let Err(
                forbidden @ (Forbidden::OutOfReach { .. } | Forbidden::Action { .. } | Forbidden::NotWritable { .. }),
            ) = ByteWrite::new(wanted.offset, old, new, rev)
            {
                self.forbid(forbidden);
            }
            return;
        }
        match ByteWrite::new(wanted.offset, old, new, rev) {
            Err(forbidden) => self.forbid(forbidden),
            Ok(write) => {
                self.new.set_bits(wanted.offset, 0xff, new);
                let mut step = register_step(field, wanted, old, &write);
                if field == reg::BOOT_WP && (old ^ new) & BOOT_WP_ENABLE != 0 {
                    match self.old.byte(reg::BOOT_WP_STATUS) {
                        Some(status) => {
                            let after = boot_wp_status(new, status);
                            step.shown_by = Some(expected(reg::BOOT_WP_STATUS, &self.old, after.into()));
                        }
                        None => self.unknown.push(reg::BOOT_WP_STATUS.to_string()),
                    }
                }
                self.steps.push(Step::Register(step));
            }
        }
    }

    fn forbid(&mut self, forbidden: Forbidden) {
        let (rule, advice) = match forbidden {
            Forbidden::OutOfReach { .. } | Forbidden::NotWritable { .. } => ("not-writable", None),
            Forbidden::Action { .. } => ("action", None),
            Forbidden::TooNew { .. } => ("too-new", None),
            Forbidden::NoSuchValue { .. } => ("no-such-value", None),
            Forbidden::Programmed { .. } => ("already-programmed", None),
            Forbidden::SetThisCycle { .. } => ("set-this-power-cycle", Some("power the card off and on first")),
        };
        let mut refusal = objection(rule, forbidden.to_string(), Vec::new());
        refusal.advice.extend(advice.map(Into::into));
        self.refusals.push(refusal);
    }

    fn judge(&mut self) {
        if !self.unknown.is_empty() {
            self.refusals.push(unknown(&self.unknown));
        }
        self.refusals.extend(broken(&Change { old: &self.old, new: &self.new }));
        // What passes is judged, too, where it is not the result.
        for step in self.steps.iter().filter_map(|step| if let Step::Register(step) = step { Some(step) } else { None })
        {
            if step.passing {
                let mut passing = self.old.clone();
                passing.set_bits(step.offset, 0xff, step.new);
                self.refusals.extend(broken(&Change { old: &self.old, new: &passing }));
            }
        }
    }

    fn groups(&mut self, card: &CardData, range: WpRange, protection: Protection) {
        match group_step(card, &self.old, range, protection) {
            Ok(step) => self.steps.push(Step::Groups(step)),
            Err(objection) => self.refusals.push(objection),
        }
    }

    fn finish(self, card: &CardData, request: &Request) -> Plan {
        let Self { old, new, refusals, steps, .. } = self;
        let ok = refusals.is_empty();
        let is_change = |step: &Step| !matches!(step, Step::Register(step) if step.passing);
        let steps = if ok && steps.iter().any(is_change) { steps } else { Vec::new() };
        let capacity = areas(card, &old);
        let native = new.bit(reg::USE_NATIVE_SECTOR, 0) != old.bit(reg::USE_NATIVE_SECTOR, 0);
        let mut plan = Plan {
            change: request.change().into(),
            ok,
            source: card.name(),
            requested: request.arguments(),
            card: CardIdentity::of(card),
            refusals,
            warnings: Vec::new(),
            permanent: steps.iter().any(Step::is_permanent),
            lost: Vec::new(),
            capacity: Capacity { before: capacity.clone(), after: capacity },
            power_cycle: PowerCycle { required: native && !steps.is_empty(), wait_ms: emulation_timeout(&old) },
            verify: Vec::new(),
            beside: Vec::new(),
            after: Vec::new(),
            commands: None,
            steps,
        };
        if !plan.power_cycle.required {
            plan.power_cycle.wait_ms = None;
        }
        describe(&mut plan, &old);
        if plan.ok {
            plan.commands = Some(commands(request, &plan, &crate::hwpart::device(card)));
        }
        plan
    }
}

fn register_step(field: &'static Field, wanted: &Wanted, old: u8, write: &ByteWrite) -> RegisterStep {
    let index = wanted.offset - field.offset;
    let changed = (0..8).filter(|bit| (old ^ write.new_value()) >> bit & 1 == 1);
    let lasts = changed.map(|bit| field.persistence_of_bit(index, bit)).min();
    RegisterStep {
        offset: wanted.offset,
        name: field.name.into(),
        index,
        mask: wanted.mask,
        old: Some(old),
        new: write.new_value(),
        one_time: write.one_time() != 0 || write.makes_permanent(),
        passing: wanted.passing,
        shown_by: None,
        lasts: lasts_text(lasts.unwrap_or(Persistence::UntilReset)).into(),
        purpose: wanted.purpose.into(),
    }
}

/// How long a value lasts, as the JSON has it.
pub(super) const fn lasts_text(persistence: Persistence) -> &'static str {
    match persistence {
        Persistence::NotSpecified => "not-specified",
        Persistence::UntilReset => "until-reset",
        Persistence::UntilPowerCycle => "until-power-cycle",
        Persistence::Kept => "kept",
        Persistence::OneTimeOnceCommitted => "one-time-once-committed",
        Persistence::OneTime => "one-time",
    }
}

fn emulation_timeout(ext_csd: &ExtCsd) -> Option<u64> {
    ext_csd.byte(reg::INI_TIMEOUT_EMU).filter(|raw| *raw > 0).map(|raw| u64::from(raw) * 100)
}

/// The groups of a range, which must be whole groups inside the user area: nothing is rounded.
fn group_step(card: &CardData, old: &ExtCsd, range: WpRange, protection: Protection) -> Result<GroupStep, Objection> {
    let (info, _) = old.decode();
    let csd = card.csd.map(|csd| Csd::new(CardKind::Emmc, csd));
    let missing: Vec<String> = [
        ("HC_WP_GRP_SIZE, HC_ERASE_GRP_SIZE", info.hc_wp_group.is_some()),
        ("SEC_COUNT", info.user_sectors.is_some()),
        ("CSD, which says whether groups can be protected", csd.is_some()),
    ]
    .into_iter()
    .filter(|(_, is_known)| !is_known)
    .map(|(name, _)| name.to_owned())
    .collect();
    let (Some(group), Some(user), Some(csd)) = (info.hc_wp_group, info.user_sectors, csd) else {
        return Err(unknown(&missing));
    };
    if csd.get(mmc::WP_GRP_ENABLE) != 1 || group.0 == 0 {
        return Err(objection("groups-unsupported", "the part does not protect groups", vec!["WP_GRP_ENABLE".into()]));
    }
    let user = csd.capacity_bytes().map_or(user, |bytes| Sectors(bytes / SECTOR_BYTES));
    let is_whole = |bytes: Bytes| bytes.0 % group.0 == 0;
    if !is_whole(range.start) || !is_whole(range.size) || range.size.0 == 0 {
        let evidence = vec![format!("{} from {} on; a group has {group}", range.size, range.start)];
        return Err(objection("groups-unaligned", "the range is not one of whole write-protect groups", evidence));
    }
    let end = range.start.0.checked_add(range.size.0);
    if end.is_none_or(|end| end > user.0.saturating_mul(SECTOR_BYTES)) {
        let evidence = vec![format!("the user area has {} sectors", user.0)];
        return Err(objection("past-capacity", "the range ends past the user area", evidence));
    }
    let by_sector =
        user.0 > BYTE_ADDRESSED_SECTORS_MAX || card.ocr.is_some_and(|ocr| Ocr(ocr).contains(Ocr::SECTOR_MODE));
    Ok(GroupStep {
        first_sector: range.start.0 / SECTOR_BYTES,
        group_sectors: group.0 / SECTOR_BYTES,
        groups: range.size.0 / group.0,
        address_bytes: if by_sector { SECTOR_BYTES } else { 1 },
        protection,
        one_time: protection == Protection::Permanent,
    })
}

/// The areas of a card.
pub(super) fn areas(card: &CardData, ext_csd: &ExtCsd) -> Vec<CapacityOf> {
    let (info, _) = ext_csd.decode();
    let csd = card.csd.filter(|_| card.kind != Some(CardKind::Sd)).map(|csd| Csd::new(CardKind::Emmc, csd));
    let user = csd.and_then(|csd| csd.capacity_bytes()).map(Bytes);
    let user = user.or_else(|| info.user_sectors.and_then(Sectors::bytes));
    let of = |area: &str, bytes: Option<Bytes>| {
        let found = bytes.filter(|bytes| bytes.0 > 0)?;
        Some(CapacityOf { area: area.into(), bytes: found, certainty: Certainty::Exact })
    };
    [of("user", user), of("boot1", info.boot), of("boot2", info.boot), of("rpmb", info.rpmb)]
        .into_iter()
        .flatten()
        .collect()
}
