import InletCore
import SystemPackage

/// Watched folders that come and go with their volumes.
extension SettingsReader {
    mutating func readPattern(_ section: ConfigSection, into watch: inout WatchSettings) {
        watch.volumeWrites = section.boolean("volume_writes") ?? false
        watch.volumeDoneAfter = section.integer("volume_done_after")
        guard RootPattern.isPattern(watch.path) else {
            for key in ["volume_writes", "volume_done_after"] where section.values[key] != nil {
                report(
                    position(key, section),
                    "'\(key)' is for folders of a pattern such as /media/*/DCIM; this one is watched as it is")
            }
            return
        }
        do throws(PatternError) {
            watch.pattern = try RootPattern(watch.path)
        } catch {
            report(position("path", section), error.message)
        }
    }

    /// Cards are not written to by surprise: where routes would move or delete what they have sent, it must be said whether
    /// that is meant for them too.
    mutating func checkVolumes(_ settings: Settings, _ section: ConfigSection) {
        guard let route = settings.routes.first(where: { $0.onSuccess != .keep || $0.onFailure != .keep }) else {
            return
        }
        let what =
            route.onSuccess == .keep
            ? "on_failure: \(route.onFailure.rawValue)" : "on_success: \(route.onSuccess.rawValue)"
        for (watch, entry) in zip(settings.watch, sections("watch", of: section, root).map(\.section)) {
            guard watch.pattern != nil, entry.values["volume_writes"] == nil else { continue }
            report(
                position("path", entry),
                "route '\(route.name)' has \(what), which would write to these volumes; say 'volume_writes: true' to allow "
                    + "it, or 'volume_writes: false' to leave everything on them as it is")
        }
    }
}
