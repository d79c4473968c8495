import InletCore

extension SettingsReader {
    /// Reports `storage:` of a destination where it names none that could hold files for it.
    mutating func checkStorages(_ destinations: [DestinationSettings], _ section: ConfigSection) {
        let known = section.section("destinations")?.positions.keys.sorted() ?? []
        for destination in destinations {
            guard type(named: destination.type)?.namesStorage == true,
                let storage = destination.values.string(DestinationType.storageKey),
                let node = root["destinations"]?[destination.name]?[DestinationType.storageKey]
            else { continue }
            if storage == destination.name {
                report(node.position, "'\(storage)' cannot store its own files; name another destination")
            } else if !known.contains(storage) {
                reportUnknownDestination(node, known.filter { $0 != destination.name })
            } else if let type = destinationTypes[storage].flatMap({ type(named: $0) }), !type.givesURLs {
                report(
                    node.position,
                    "destination '\(storage)' is of type \(type.name), whose files have no URL; "
                        + "name one of type \(storing.joined(separator: " or "))")
            }
        }
    }

    /// The type of the destination that gets the bytes of what is sent to `destination`: its own, or that of its storage.
    func storingType(of destination: String) -> DestinationType? {
        let own = destinationTypes[destination].flatMap { type(named: $0) }
        guard own?.namesStorage == true else { return own }
        guard case .scalar(let storage, _)? = root["destinations"]?[destination]?[DestinationType.storageKey]?.content,
            let type = destinationTypes[storage].flatMap({ type(named: $0) }), !type.namesStorage
        else { return nil }
        return type
    }

    func type(named name: String) -> DestinationType? { values.types.first { $0.name == name } }

    /// The types that could store files.
    private var storing: [String] { values.types.filter(\.givesURLs).map(\.name) }
}
