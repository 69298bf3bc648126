//! The cloud that runs this machine, from its firmware tables (DMI).
//!
//! Only strings that a provider is known to put there are taken; no network request is made, and a machine that says
//! nothing has no provider.

use super::root::SysRoot;

/// The firmware's strings about the machine; empty ones are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dmi {
    /// Maker of the system.
    pub sys_vendor: Option<String>,
    /// Its product name.
    pub product_name: Option<String>,
    /// Its version.
    pub product_version: Option<String>,
    /// The chassis' asset tag.
    pub chassis_asset_tag: Option<String>,
    /// Maker of the firmware.
    pub bios_vendor: Option<String>,
    /// Version of the firmware.
    pub bios_version: Option<String>,
}

impl Dmi {
    /// Read `/sys/class/dmi/id`; everything is `None` on machines without it.
    pub fn read(root: &SysRoot) -> Dmi {
        let text = |name: &str| root.text(format!("/sys/class/dmi/id/{name}"));
        Dmi {
            sys_vendor: text("sys_vendor"),
            product_name: text("product_name"),
            product_version: text("product_version"),
            chassis_asset_tag: text("chassis_asset_tag"),
            bios_vendor: text("bios_vendor"),
            bios_version: text("bios_version"),
        }
    }

    fn field(&self, field: ProviderField) -> &str {
        let value = match field {
            ProviderField::SysVendor => &self.sys_vendor,
            ProviderField::ProductName => &self.product_name,
            ProviderField::ChassisAssetTag => &self.chassis_asset_tag,
            ProviderField::BiosVersion => &self.bios_version,
        };
        value.as_deref().unwrap_or("")
    }
}

/// Who runs the machine, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// The provider's name.
    pub name: String,
    /// The instance type, if the firmware has it.
    pub instance_type: Option<String>,
    /// The string that gave it away.
    pub evidence: String,
}

#[derive(Debug, Clone, Copy)]
enum ProviderField {
    SysVendor,
    ProductName,
    ChassisAssetTag,
    BiosVersion,
}

impl ProviderField {
    fn name(self) -> &'static str {
        match self {
            ProviderField::SysVendor => "sys_vendor",
            ProviderField::ProductName => "product_name",
            ProviderField::ChassisAssetTag => "chassis_asset_tag",
            ProviderField::BiosVersion => "bios_version",
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Is {
    Exactly(&'static str),
    Ending(&'static str),
}

use Is::{Ending, Exactly};
use ProviderField::{BiosVersion, ChassisAssetTag, ProductName, SysVendor};

/// Provider, field, value. The first that fits counts, so the clouds that build on OpenStack stand before it.
const PROVIDERS: &[(&str, ProviderField, Is)] = &[
    (AWS, SysVendor, Exactly("Amazon EC2")),
    (AWS, BiosVersion, Ending(".amazon")),
    ("Google Cloud", ProductName, Exactly("Google Compute Engine")),
    ("Azure", ChassisAssetTag, Exactly("7783-7084-3265-9085-8269-3286-77")),
    ("Oracle Cloud", ChassisAssetTag, Exactly("OracleCloud.com")),
    ("DigitalOcean", SysVendor, Exactly("DigitalOcean")),
    ("Hetzner", SysVendor, Exactly("Hetzner")),
    ("Vultr", SysVendor, Exactly("Vultr")),
    ("Akamai (Linode)", SysVendor, Exactly("Linode")),
    ("Akamai (Linode)", SysVendor, Exactly("Akamai")),
    (SCALEWAY, SysVendor, Exactly("Scaleway")),
    ("UpCloud", SysVendor, Exactly("UpCloud")),
    ("Alibaba Cloud", ProductName, Exactly("Alibaba Cloud ECS")),
    ("Alibaba Cloud", SysVendor, Exactly("Alibaba Cloud")),
    ("Tencent Cloud", SysVendor, Exactly("Tencent Cloud")),
    ("Exoscale", ProductName, Exactly("Exoscale")),
    ("CloudSigma", ProductName, Exactly("CloudSigma")),
    ("Huawei Cloud", ChassisAssetTag, Exactly("HUAWEICLOUD")),
    ("Open Telekom Cloud", ChassisAssetTag, Exactly("OpenTelekomCloud")),
    ("OpenStack", ProductName, Exactly("OpenStack Nova")),
    ("OpenStack", ProductName, Exactly("OpenStack Compute")),
    ("OpenStack", SysVendor, Exactly("OpenStack Foundation")),
];

const AWS: &str = "AWS";
const SCALEWAY: &str = "Scaleway";

/// Hypervisors by their firmware strings, for machines of any provider.
const HYPERVISORS: &[(&str, ProviderField, Is)] = &[
    ("VMware", SysVendor, Exactly("VMware, Inc.")),
    ("VirtualBox", ProductName, Exactly("VirtualBox")),
    ("Hyper-V", ProductName, Exactly("Virtual Machine")),
    ("Xen", ProductName, Exactly("HVM domU")),
    ("Nitro", SysVendor, Exactly("Amazon EC2")),
    ("Parallels", SysVendor, Exactly("Parallels International GmbH.")),
    ("QEMU/KVM", SysVendor, Exactly("QEMU")),
    ("KVM", ProductName, Exactly("KVM")),
];

/// The provider that the firmware names.
pub fn provider_of(dmi: &Dmi) -> Option<Provider> {
    let (name, field, value) = first_fit(PROVIDERS, dmi)?;
    let product = dmi.product_name.as_deref();
    let instance_type = match name {
        AWS if matches!(field, SysVendor) => product.map(str::to_string),
        SCALEWAY => product.and_then(|product| product.strip_prefix("SCW-")).map(str::to_string),
        _ => None,
    };
    Some(Provider {
        name: name.to_string(),
        instance_type,
        evidence: format!("DMI {} is {value:?}", field.name()),
    })
}

/// The hypervisor that the firmware names; [`super::host::HostFacts`] determines separately whether there is one.
pub fn hypervisor_of(dmi: &Dmi) -> Option<&'static str> {
    first_fit(HYPERVISORS, dmi).map(|(name, ..)| name)
}

fn first_fit<'a>(
    table: &[(&'static str, ProviderField, Is)],
    dmi: &'a Dmi,
) -> Option<(&'static str, ProviderField, &'a str)> {
    table.iter().find_map(|&(name, field, is)| {
        let value = dmi.field(field);
        let fits = match is {
            Exactly(known) => value == known,
            Ending(known) => value.ends_with(known),
        };
        fits.then_some((name, field, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dmi(sys_vendor: &str, product_name: &str, chassis_asset_tag: &str) -> Dmi {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_string());
        Dmi {
            sys_vendor: some(sys_vendor),
            product_name: some(product_name),
            chassis_asset_tag: some(chassis_asset_tag),
            ..Dmi::default()
        }
    }

    #[test]
    fn providers() {
        let check = |dmi: Dmi, expected: Option<(&str, Option<&str>)>| {
            let found = provider_of(&dmi);
            let found = found.as_ref().map(|p| (p.name.as_str(), p.instance_type.as_deref()));
            assert_eq!(found, expected, "{dmi:?}");
        };
        check(dmi("Amazon EC2", "m5.large", "Amazon EC2"), Some(("AWS", Some("m5.large"))));
        let xen = Dmi { bios_version: Some("4.11.amazon".into()), ..dmi("Xen", "HVM domU", "") };
        check(xen, Some(("AWS", None)));
        check(dmi("Google", "Google Compute Engine", ""), Some(("Google Cloud", None)));
        let azure = "7783-7084-3265-9085-8269-3286-77";
        check(dmi("Microsoft Corporation", "Virtual Machine", azure), Some(("Azure", None)));
        check(dmi("Microsoft Corporation", "Virtual Machine", "1234"), None);
        check(dmi("DigitalOcean", "Droplet", ""), Some(("DigitalOcean", None)));
        check(dmi("Hetzner", "vServer", ""), Some(("Hetzner", None)));
        check(dmi("Scaleway", "SCW-DEV1-S", ""), Some(("Scaleway", Some("DEV1-S"))));
        check(
            dmi("QEMU", "Standard PC (i440FX + PIIX, 1996)", "OracleCloud.com"),
            Some(("Oracle Cloud", None)),
        );
        check(dmi("OpenStack Foundation", "OpenStack Nova", "HUAWEICLOUD"), Some(("Huawei Cloud", None)));
        check(dmi("OpenStack Foundation", "OpenStack Nova", ""), Some(("OpenStack", None)));
        check(dmi("QEMU", "Standard PC (Q35 + ICH9, 2009)", ""), None);
        check(dmi("Dell Inc.", "PowerEdge R740", ""), None);
        check(Dmi::default(), None);
    }

    #[test]
    fn evidence_and_hypervisor() {
        let aws = dmi("Amazon EC2", "m5.large", "");
        assert_eq!(provider_of(&aws).unwrap().evidence, "DMI sys_vendor is \"Amazon EC2\"");
        let check = |dmi: Dmi, expected| assert_eq!(hypervisor_of(&dmi), expected);
        check(aws, Some("Nitro"));
        check(dmi("QEMU", "Standard PC (Q35 + ICH9, 2009)", ""), Some("QEMU/KVM"));
        check(dmi("Dell Inc.", "PowerEdge R740", ""), None);
    }
}
