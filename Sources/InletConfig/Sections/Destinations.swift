import InletCore

/// `destinations:`, and the settings that they share with the whole agent: proxies and bandwidth.
extension SettingsReader {
    func destinations() -> [DestinationSettings] {
        guard let section = file.destinations else { return [] }
        return section.positions.sorted { $0.value < $1.value }.compactMap { name, _ in
            guard let values = section.section(name), let type = values.string("type") else { return nil }
            return DestinationSettings(name: name, type: type, values: values)
        }
    }

    // MARK: - Storage of registered files

    /// Reports a `storage:` that names no destination able to store the files.
    mutating func checkStorages(_ destinations: [DestinationSettings]) {
        let known = file.destinations?.positions.keys.sorted() ?? []
        for destination in destinations {
            guard type(named: destination.type)?.namesStorage == true,
                let storage = destination.values.string(DestinationType.storageKey),
                let node = storageNode(of: destination.name)
            else { continue }
            if storage == destination.name {
                report(node.position, "'\(storage)' cannot store its own files; name another destination")
            } else if !known.contains(storage) {
                reportUnknownDestination(node, known.filter { $0 != destination.name })
            } else if let type = destinationTypes[storage].flatMap({ type(named: $0) }), !type.givesURLs {
                let storing = values.types.filter(\.givesURLs).map(\.name).joined(separator: " or ")
                report(
                    node.position,
                    "choose a destination of type \(storing): the files of '\(storage)' (type \(type.name)) have no URL"
                )
            }
        }
    }

    /// The type of the destination that stores the bytes for `destination`: its own, or that of its storage.
    func storingType(of destination: String) -> DestinationType? {
        let own = destinationTypes[destination].flatMap { type(named: $0) }
        guard own?.namesStorage == true else { return own }
        guard let type = storage(of: destination).flatMap({ destinationTypes[$0] }).flatMap({ type(named: $0) }),
            !type.namesStorage
        else { return nil }
        return type
    }

    /// The types of `targets` if all are known and none can store companions; nil otherwise.
    func typesWithoutCompanions(_ targets: [String]) -> String? {
        let kinds = targets.compactMap { storingType(of: $0) }
        guard !kinds.isEmpty, kinds.count == targets.count, !kinds.contains(where: \.takesSidecars) else { return nil }
        return Set(kinds.map(\.name)).sorted().joined(separator: ", ")
    }

    /// The destination that `destination` names as its storage.
    func storage(of destination: String) -> String? {
        guard case .scalar(let storage, _)? = storageNode(of: destination)?.content else { return nil }
        return storage
    }

    private func storageNode(of destination: String) -> YAMLNode? {
        root["destinations"]?[destination]?[DestinationType.storageKey]
    }

    mutating func reportUnknownDestination(_ node: YAMLNode, _ known: [String]) {
        guard case .scalar(let written, _) = node.content else { return }
        let hint =
            if known.isEmpty {
                "the configuration has no destinations"
            } else if let name = Suggestion.nearest(to: written, in: known) {
                "did you mean '\(name)'?"
            } else {
                "known destinations: \(known.filter(SecretMask.isHarmless).map { DisplayText.escape($0) }.joined(separator: ", "))"
            }
        report(node.position, "unknown destination \(SecretMask.quoted(written)); \(hint)")
    }

    // MARK: - Proxies

    /// The agent's proxy; reports errors in it and in the proxies of destinations.
    mutating func proxies(_ destinations: [DestinationSettings]) -> ProxySettings? {
        for destination in destinations { _ = proxy(ProxyKeys.key().value(in: destination.values)) }
        return proxy(file.proxy)
    }

    private mutating func proxy(_ section: Section<ProxyKeys>) -> ProxySettings? {
        // An unreadable value has its own error.
        guard section.url != nil else { return nil }
        do throws(ProxySettings.Fault) {
            return try ProxySettings(section)
        } catch {
            report(section.values.position(error.key), "'\(error.key)' \(error.message)")
            return nil
        }
    }

    // MARK: - Bandwidth and windows

    mutating func bandwidth(_ destinations: [DestinationSettings]) -> BandwidthLimits {
        zone = file.limits.zone
        if let zone, !Timetable.knows(zone: zone) {
            report(
                file.limits.position(\.zone),
                "unknown time zone \(SecretMask.quoted(zone)); write for example Europe/Berlin")
        }
        var limits = BandwidthLimits(all: timetable(file.limits.bandwidth))
        for destination in destinations {
            let table = timetable(Section(BandwidthKeys(), destination.values))
            if table.base != nil || !table.entries.isEmpty { limits.destinations[destination.name] = table }
        }
        return limits
    }

    private mutating func timetable(_ section: Section<BandwidthKeys>) -> Timetable {
        let entries = section.schedule.compactMap { entry -> Timetable.Entry? in
            guard let span = span(entry.span), let rate = entry.rate else { return nil }
            return Timetable.Entry(span, rate: rate)
        }
        return Timetable(section.rate ?? nil, entries, zone: zone)
    }

    /// nil without a window, and after an error.
    mutating func window(_ section: Section<RouteKeys>) -> DeliveryWindow? {
        guard let span = span(section.window) else { return nil }
        return DeliveryWindow(span, above: section.windowAbove ?? DeliveryWindow.standardSize, zone: zone)
    }

    private mutating func span(_ section: Section<SpanKeys>) -> DaySpan? {
        guard let from = section.from, let to = section.to else { return nil }
        if from == DaySpan.minutesOfDay {
            report(section.position(\.from), "'from' must be before \"24:00\"; write \"00:00\" for midnight")
            return nil
        }
        if from == to {
            report(
                section.position(\.to),
                "'to' is the same as 'from'; write from \"00:00\" to \"24:00\" for the whole day")
            return nil
        }
        let days = section.days
        if let days, days.isEmpty, let place = section.place(\.days) {
            report(place, "'days' is empty; leave the key out for every day")
        }
        return DaySpan(from: from, to: to, days: (days ?? []).compactMap { Weekday(name: $0) })
    }
}
