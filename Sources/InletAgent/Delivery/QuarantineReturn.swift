internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Brings a file that is to be sent again back from its quarantine, under the name by which it is sent. Blocks.
struct QuarantineReturn: Sendable {
    /// Why a file stays where it is: the end of a sentence that begins with it.
    struct Refusal: Error, CustomStringConvertible {
        let description: String
    }

    let file: FileRow

    private var places: FinishPlaces { FinishPlaces(root: file.root, settings: nil) }
    private var shown: String { Disposition.quarantine(file.disposition) ?? "" }

    /// Moves it, unless that has been done. - Returns: what it is now, under its own name.
    func run() throws(Refusal) -> FileIdentity {
        do {
            if let lying = try lying() { return try move(lying.name, lying.identity) }
            if let back = try places.find(file.fullPath), let identity = try back.look().identity,
                identity.isKnown(as: file.identity)
            {
                return identity
            }
        } catch let refusal as Refusal {
            throw refusal
        } catch {
            throw Refusal(description: "lies in quarantine as \(shown), and cannot be moved back: \(error)")
        }
        throw Refusal(
            description: "was quarantined as \(shown), and is not there: is its disk mounted? "
                + "Put it back under \(file.root.display), and it is taken as a new file")
    }

    /// The file where its disposition says; the name in that is written as people read it.
    private func lying() throws -> (name: OpenName, identity: FileIdentity)? {
        for path in Set([FilePath(shown), FilePath(bytes: DisplayText.unescape(shown))]) {
            guard let open = try places.find(path), let identity = try open.look().identity else { continue }
            guard identity.isKnown(as: file.identity) else {
                throw Refusal(description: "was quarantined as \(shown), where another file is now")
            }
            return (open, identity)
        }
        return nil
    }

    private func move(_ lying: OpenName, _ identity: FileIdentity) throws -> FileIdentity {
        let own = try places.open(file.fullPath, making: 0o755)
        guard try own.look() == .missing else { throw taken }
        do {
            try lying.rename(to: own)
        } catch {
            if error.isTaken { throw taken }
            guard error.isCrossDevice else { throw error }
            let copy = own.beside(FileCopy.temporaryName(for: own.name))
            guard try SourceCopy.move(lying, identity, to: own, by: copy) else { throw taken }
        }
        try own.folder.synchronize()
        try lying.folder.synchronize()
        QuarantineReason.remove(beside: lying, disposition: file.disposition ?? "")
        guard let now = try own.look().identity, now.isKnown(as: file.identity) else { throw taken }
        return now
    }

    private var taken: Refusal {
        Refusal(
            description: "lies in quarantine as \(shown), and another file is at \(file.fullPath.display): "
                + "move that away, and retry")
    }
}
