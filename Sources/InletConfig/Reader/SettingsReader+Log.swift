import InletCore
import SystemPackage

/// `log:` and `proxy:`.
extension SettingsReader {
    mutating func log(_ section: ConfigSection?) -> LogSettings {
        var log = LogSettings()
        guard let section else { return log }
        if let level = section.string("level").flatMap(LogSettings.Level.init) { log.level = level }
        if let format = section.string("format").flatMap(LogSettings.Format.init) { log.format = format }
        if let output = section.string("output") {
            let isStream = LogSettings.streams.contains(output)
            log.output = isStream ? output : values.interpolation.paths.resolve(output)?.string ?? output
        }
        if let size = section.bytes("max_size") {
            log.maxSize = size
            if size < Self.smallestLog {
                report(position("max_size", section), "'max_size' must be 64KiB or more, or off: a line must fit")
            }
        } else if section.string("max_size") == "off" {
            log.maxSize = nil
        }
        log.keep = section.integer("keep") ?? log.keep
        return log
    }

    private static let smallestLog: Int64 = 64 << 10

    /// The proxy of the whole configuration; reports what is wrong with it and with those of the destinations.
    mutating func proxies(_ section: ConfigSection, _ destinations: [DestinationSettings]) -> ProxySettings? {
        for destination in destinations { _ = proxy(destination.values) }
        return proxy(section)
    }

    private mutating func proxy(_ section: ConfigSection) -> ProxySettings? {
        guard let proxy = section.section(KeySpec.proxy.name) else { return nil }
        // A value that could not be read has its own error.
        guard proxy.values["url"] != nil else { return nil }
        do throws(ProxySettings.Fault) {
            return try ProxySettings(proxy)
        } catch {
            report(proxy.positions[error.key] ?? proxy.position, "'\(error.key)' \(error.message)")
            return nil
        }
    }
}
