import InletCore

/// `destinations:`, and what they have in common with the whole agent: proxies and the speed of sending.
extension SettingsReader {
    func destinations() -> [DestinationSettings] {
        guard let section = file.destinations else { return [] }
        return section.positions.sorted { $0.value < $1.value }.compactMap { name, _ in
            guard let values = section.section(name), let type = values.string("type") else { return nil }
            return DestinationSettings(name: name, type: type, values: values)
        }
    }

    // MARK: - Destinations that store files for others

    /// Reports `storage:` of a destination where it names none that could hold files for it.
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
                    "destination '\(storage)' is of type \(type.name), whose files have no URL; name one of type \(storing)"
                )
            }
        }
    }

    /// The type of the destination that gets the bytes of what is sent to `destination`: its own, or that of its storage.
    func storingType(of destination: String) -> DestinationType? {
        let own = destinationTypes[destination].flatMap { type(named: $0) }
        guard own?.namesStorage == true else { return own }
        guard case .scalar(let storage, _)? = storageNode(of: destination)?.content,
            let type = destinationTypes[storage].flatMap({ type(named: $0) }), !type.namesStorage
        else { return nil }
        return type
    }

    /// The destinations' types where all of `targets` are known and none of them can hold companions; nil otherwise.
    func typesWithoutCompanions(_ targets: [String]) -> String? {
        let kinds = targets.compactMap { storingType(of: $0) }
        guard !kinds.isEmpty, kinds.count == targets.count, !kinds.contains(where: \.takesSidecars) else { return nil }
        return Set(kinds.map(\.name)).sorted().joined(separator: ", ")
    }

    private func storageNode(of destination: String) -> YAMLNode? {
        root["destinations"]?[destination]?[DestinationType.storageKey]
    }

    mutating func reportUnknownDestination(_ node: YAMLNode, _ known: [String]) {
        guard case .scalar(let written, _) = node.content else { return }
        let hint =
            if known.isEmpty {
                "no destinations are defined"
            } else if let name = Suggestion.nearest(to: written, in: known) {
                "did you mean '\(name)'?"
            } else {
                "defined are: \(known.filter(SecretMask.isHarmless).map { DisplayText.escape($0) }.joined(separator: ", "))"
            }
        report(node.position, "unknown destination \(SecretMask.quoted(written)); \(hint)")
    }

    // MARK: - Proxies

    /// The proxy of the whole configuration; reports what is wrong with it and with those of the destinations.
    mutating func proxies(_ destinations: [DestinationSettings]) -> ProxySettings? {
        for destination in destinations { _ = proxy(ProxyKeys.key().value(in: destination.values)) }
        return proxy(file.proxy)
    }

    private mutating func proxy(_ section: Section<ProxyKeys>) -> ProxySettings? {
        // A value that could not be read has its own error.
        guard section.url != nil else { return nil }
        do throws(ProxySettings.Fault) {
            return try ProxySettings(section)
        } catch {
            report(section.values.position(error.key), "'\(error.key)' \(error.message)")
            return nil
        }
    }

    // MARK: - How fast may be sent when

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

    /// nil without a window, and after a report.
    mutating func window(_ section: Section<RouteKeys>) -> DeliveryWindow? {
        guard let span = span(section.window) else { return nil }
        return DeliveryWindow(span, above: section.windowAbove ?? DeliveryWindow.standardSize, zone: zone)
    }

    private mutating func span(_ section: Section<SpanKeys>) -> DaySpan? {
        guard let from = section.from, let to = section.to else { return nil }
        if from == DaySpan.minutesOfDay {
            report(section.position(\.from), "'from' is before \"24:00\", which is the next day's \"00:00\"")
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
            report(place, "'days' names no day; leave the key out for every day")
        }
        return DaySpan(from: from, to: to, days: (days ?? []).compactMap { Weekday(name: $0) })
    }
}
