package import InletCore
import SystemPackage

/// The PostgreSQL that agents share: `fleet:`, and `prefix:` and `fleet:` of destinations.
extension SettingsReader {
    mutating func fleet(_ destinations: [DestinationSettings]) -> FleetSettings? {
        checkShares(destinations)
        guard let place = file.place(\.fleet) else { return nil }
        let section = file.fleet
        // Anything else has its own error.
        if let node = values.nodes[place], !node.isNull {
            guard case .mapping = node.content else { return nil }
        }
        let address = address(section, at: place)
        checkName(section)
        let patience = section.patience ?? FleetSettings.standardPatience
        if patience < .seconds(1) || patience > .seconds(86_400) {
            report(section.position(\.patience), "'patience' must be from 1s to 24h")
        }
        guard let url = address else { return nil }
        for source in [url, section.adminURLFile.map { .file($0) }].compactMap(\.self) { hidePasswords(of: source) }
        return FleetSettings(
            url: url, name: section.name, joinFile: section.joinFile, patience: patience,
            whenAway: section.whenAway ?? .tag, receipts: section.receipts ?? true,
            adminURL: section.adminURLFile.map { .file($0) }, allowsUnverified: section.allowUnverified ?? false)
    }

    /// The one address that the section has; nil after a report.
    private mutating func address(
        _ section: Section<FleetKeys>, at place: SourcePosition
    ) -> FleetSettings.Source? {
        switch (section.place(\.url), section.place(\.urlFile)) {
        case (nil, nil):
            report(place, "'fleet' needs 'url' or 'url_file': the address of PostgreSQL, as in \(FleetURL.example)")
            return nil
        case (let url?, let file?):
            report(url < file ? file : url, "give either 'url' or 'url_file', not both")
            return nil
        case (nil, _): return section.urlFile.map { .file($0) }
        case (let place?, nil):
            // An unreadable value has its own error.
            guard let url = section.url else { return nil }
            do throws(PatternError) { _ = try FleetURL(url.reveal()) } catch { report(place, "'url' \(error)") }
            return .text(url)
        }
    }

    private mutating func checkName(_ section: Section<FleetKeys>) {
        guard let name = section.name, let objection = FleetSettings.objection(toName: name) else { return }
        report(section.position(\.name), "'name' \(objection)")
    }

    /// Messages and reports must not show the passwords of an address, in whatever form.
    private mutating func hidePasswords(of source: FleetSettings.Source) {
        // A connection reports why the file cannot be read.
        guard let text = try? source.read(), let url = try? FleetURL(text) else { return }
        values.filledIn.formUnion(url.secrets)
    }

    private mutating func checkShares(_ destinations: [DestinationSettings]) {
        for destination in destinations {
            guard let prefix = destination.fleet.prefix,
                let objection = FleetShareSettings.objection(toPrefix: prefix)
            else { continue }
            report(destination.values.position(DestinationType.prefix.spec.name), "'prefix' \(objection)")
        }
    }
}

extension Section<ConfigKeys> {
    /// Keys of destinations that do nothing without `fleet:`.
    func idleFleetKeys() -> [ConfigIssue] {
        guard place(\.fleet) == nil, let destinations = self.destinations else { return [] }
        return destinations.positions.keys.compactMap { destinations.section($0) }.flatMap { values in
            [DestinationType.prefix.spec.name, DestinationType.fleet.spec.name].compactMap { name in
                values.positions[name].map {
                    ConfigIssue($0, "'\(name)' does nothing without 'fleet:' at the top level")
                }
            }
        }.sorted { $0.position < $1.position }
    }
}

extension FleetSettings.Source {
    /// The address itself. Blocks on a file.
    ///
    /// - Throws: an error of the code `argument` that names the file, the cause and the remedy.
    package func read() throws(FleetError) -> String {
        switch self {
        case .text(let secret): return secret.reveal()
        case .file(let path):
            let bytes: [UInt8]
            do {
                bytes = try FileTrust.read(path, limit: Self.longest).bytes
            } catch {
                throw FleetError(
                    .argument, "cannot read \(path.display): \(error); put the address of PostgreSQL there")
            }
            let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
            guard let line = lines.first?.drop(while: \.isWhitespace),
                let end = line.lastIndex(where: { !$0.isWhitespace })
            else { throw FleetError(.argument, "\(path.display) is empty; put the address of PostgreSQL there") }
            return String(line[...end])
        }
    }

    private static let longest = 64 << 10
}
