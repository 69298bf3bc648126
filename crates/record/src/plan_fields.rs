//! Every resolved field of a job's plan as text, so that a stored record tells exactly what was run.

use std::collections::BTreeMap;

use fathom_model::JobPlan;
use fathom_model::plan::{IoPlan, Mix, OpenSync, Payload, SizeSpec, TimePlan};

/// Collects fields of a plan as text.
#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Fields {
    fn set(&mut self, name: &str, value: impl ToString) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    fn flag(&mut self, name: &str, value: bool) {
        self.set(name, u8::from(value));
    }
}

/// Every resolved field of the plan under fio's name for it where it has one; times in ns, sizes in bytes.
pub(crate) fn plan_fields(plan: &JobPlan, clone: usize) -> BTreeMap<String, String> {
    let mut fields = Fields::default();
    fields.set("ioengine", &plan.engine.name);
    for (name, value) in &plan.engine.options {
        fields.set(&format!("ioengine.{name}"), value);
    }
    fields.set("numjobs", plan.clones.len());
    if let Some(clone) = plan.clones.get(clone) {
        let paths: Vec<String> = clone.paths.iter().map(|path| path.display().to_string()).collect();
        let cpus: Vec<String> = clone.cpus.iter().map(usize::to_string).collect();
        fields.set("filename", paths.join(":"));
        fields.set("seed", clone.seed);
        fields.set("cpus_allowed", cpus.join(","));
    }
    let depth = &plan.depth;
    fields.set("iodepth", depth.iodepth);
    fields.set("iodepth_batch", depth.batch_submit);
    fields.set("iodepth_batch_inline", depth.batch_submit_inline);
    fields.set("iodepth_batch_complete_min", depth.batch_complete_min);
    fields.set("iodepth_batch_complete_max", depth.batch_complete_max);
    fields.set("iodepth_low", depth.low);
    io_fields(&plan.io, &mut fields);
    time_fields(&plan.time, &mut fields);
    let files = &plan.files;
    fields.set("fallocate", format!("{:?}", files.fallocate).to_lowercase());
    fields.flag("overwrite", files.overwrite);
    fields.flag("create_only", files.create_only);
    fields.flag("allow_file_create", files.allow_create);
    fields.flag("unlink", files.unlink);
    fields.flag("allow_mounted_write", files.allow_mounted_write);
    let measure = &plan.measure;
    fields.flag("measure_slat", measure.slat);
    fields.flag("measure_clat", measure.clat);
    fields.flag("measure_lat", measure.lat);
    fields.flag("measure_bandwidth", measure.bandwidth);
    fields.flag("exitall", plan.exit_all);
    fields.flag("continue_on_error_read", plan.on_error.continue_read);
    fields.flag("continue_on_error_write", plan.on_error.continue_write);
    fields.0
}

fn io_fields(io: &IoPlan, fields: &mut Fields) {
    fields.set("rw", io.pattern.name());
    if let Mix::ReadWrite { read_percent } = io.pattern.mix {
        fields.set("rwmixread", read_percent);
    }
    for (op, size) in io.block_size.iter() {
        fields.set(&format!("bs.{op}"), size.largest());
        if let Some(split) = size.split() {
            fields.set(&format!("bssplit.{op}"), split);
        }
    }
    if let Some(size) = io.size {
        fields.set("size", size_text(size));
    }
    if let Some(size) = io.io_size {
        fields.set("io_size", size_text(size));
    }
    if let Some(size) = io.file_size {
        fields.set("filesize", size);
    }
    fields.set("offset", size_text(io.offset));
    fields.set("offset_increment", size_text(io.offset_increment));
    fields.flag("norandommap", !io.random_map);
    fields.set("loops", io.loops);
    fields.set("fsync", io.fsync_every);
    fields.set("fdatasync", io.fdatasync_every);
    fields.flag("end_fsync", io.end_fsync);
    let open_sync = match io.open_sync {
        OpenSync::None => "none",
        OpenSync::Sync => "sync",
        OpenSync::Dsync => "dsync",
    };
    fields.set("sync", open_sync);
    fields.flag("direct", io.direct);
    fields.flag("invalidate", io.invalidate);
    let payload = match io.payload {
        Payload::Stamped => "stamped",
        Payload::Fixed => "fixed",
        Payload::Refill => "refill",
        Payload::Zero => "zero",
    };
    fields.set("payload", payload);
}

fn time_fields(time: &TimePlan, fields: &mut Fields) {
    if let Some(runtime) = time.runtime {
        fields.set("runtime_ns", runtime.0);
    }
    fields.flag("time_based", time.time_based);
    fields.set("ramp_time_ns", time.ramp.0);
    fields.set("startdelay_min_ns", time.start_delay.0.0);
    fields.set("startdelay_max_ns", time.start_delay.1.0);
    fields.set("thinktime_ns", time.think_time.pause.0);
    if let Some(blocks) = time.think_time.block_limit() {
        fields.set("thinktime_blocks", blocks);
    }
    if time.think_time.io_time.0 > 0 {
        fields.set("thinktime_iotime_ns", time.think_time.io_time.0);
    }
    for (op, rate) in time.rate.rates.iter() {
        if let Some(rate) = rate {
            fields.set(&format!("rate_iops.{op}"), 1e9 / rate.mean_gap_ns());
            fields.set("rate_process", format!("{:?}", time.rate.process).to_lowercase());
        }
    }
}

fn size_text(size: SizeSpec) -> String {
    match size {
        SizeSpec::Bytes(bytes) => bytes.to_string(),
        SizeSpec::Percent(percent) => format!("{percent}%"),
    }
}
