internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Files that go with others.
extension Adopter {
    /// The file on the disk that it goes with; nil for nearly every file.
    func belonging(of arrival: Arrival) throws(SystemError) -> Belonging? {
        for belonging in routes.belongings(of: arrival.path) {
            guard let identity = try FileLook.look(at: RootedPath(root, belonging.main)).identity,
                routes.route(for: belonging.main, size: identity.size)?.name == belonging.route.name
            else { continue }
            return belonging
        }
        return nil
    }

    /// A companion shares its file's fate: what goes with a file that is sent goes with it.
    ///
    /// - Parameter main: what has just become of that, where it was among them.
    mutating func adopt(_ arrival: Arrival, _ belonging: Belonging, _ main: Ending?) async throws -> Ending {
        var fate = main
        if fate == nil || fate == .known {
            if let row = try await admitter.journal.newest(root, [belonging.main], volume: volume?.key).first ?? nil {
                fate = try await admitter.journal.isAdopted(row.id) ? .adopted : .send
            } else if let identity = try FileLook.look(at: RootedPath(root, belonging.main)).identity, isOld(identity) {
                let file = Arrival(root: root, path: belonging.main, identity: identity, volume: volume)
                fate = try await adoptMains([file])[belonging.main]
            } else {
                fate = .send
            }
        }
        guard fate == .adopted else { return fate ?? .send }
        let adoption = FileAdoption(arrival, plan: nil, role: belonging.companion.kind)
        let outcome = try await admitter.journal.adopt([adoption], at: .now).first
        return outcome.map { ending(of: $0, arrival) } ?? .later
    }
}
