internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// The look at a file that is new, through its own descriptor.
extension SettledFiles {
    /// - Parameter binding: the quiet time that counts instead of the file's own, and why.
    mutating func probe(
        _ arrival: Arrival, _ binding: (quiet: Duration, why: String)? = nil
    ) -> Settler.Look {
        let path = root.pushing(arrival.path)
        let writer: LeaseProbe
        let now: FileLook
        do throws(SystemError) {
            let (folder, name) = try turn.parent(of: arrival.path)
            let found = WriterProbe.look(at: name, in: folder)
            // After the probe: a writer that closed between the first look and the probe has left another file.
            writer = found.writer
            if let file = found.file { now = file } else { now = try look(arrival.path) }
        } catch {
            return error.isMissing ? .gone : .failing(why: "\(error)")
        }
        let isBusy = writer == .busy
        if isBusy { log.emit(.fileSettling(path: path, busy: true)) }
        if case .other = now {
            noteMadeUp(arrival.path)
            // Where other machines write, the size may only be an old one.
            if case .unknown = writer { return .later("reading it gives more than its size says", .seconds(30)) }
            return .notRegular
        }
        if let refusal = now.refusal(by: rule) {
            refused.note(arrival.path, refusal)
            return .notRegular
        }
        let identity = now.identity ?? arrival.identity
        guard let binding = binding ?? ownQuiet(arrival.path, identity) else { return .file(identity, busy: isBusy) }
        return .bound(identity, busy: isBusy, quiet: binding.quiet, why: binding.why)
    }

    /// The quiet time that the route asks for which takes the file as it is.
    private func ownQuiet(_ path: FilePath, _ identity: FileIdentity) -> (quiet: Duration, why: String)? {
        admitter.routes.longestSettle(for: path, size: identity.size, root: settle).map {
            ($0, "waiting for its route's settle time")
        }
    }

    /// Said once for each folder and extension.
    private mutating func noteMadeUp(_ path: FilePath) {
        guard tally.count(path) else { return }
        log.emit(
            .fileIgnored(
                path: root.pushing(path),
                reason:
                    "reading it gives more than its size says: it is made up as it is read, as in /proc or by some FUSE "
                    + "programs, and nobody can tell whether all of it is there; put a copy here"))
    }
}
