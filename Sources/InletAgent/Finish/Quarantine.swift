internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Why a file is in quarantine, in a file beside it: `NAME.reason.json`.
struct QuarantineReason: Sendable {
    let receipt: Receipt
    /// Says which file it is about.
    let disposition: String

    static let ending = ".reason.json"
    /// A reason is a few hundred bytes for each delivery.
    private static let longest = 4 << 20

    /// Replaces an earlier reason for a file of that name, and nothing else: what has the name already, such as the reason
    /// of another file whose long name was shortened to the same, has it written under `NAME.reason_2.json`.
    func write(beside file: OpenName) throws(SystemError) {
        var number = 1
        while true {
            let name = Self.name(of: file.name, number, limit: file.folder.longestName)
            do throws(SystemError) {
                if Self.isReason(file.beside(name), disposition) {
                    return try file.folder.write(receipt.line, to: name, mode: 0o644)
                }
                return try file.folder.create(receipt.line, as: name, mode: 0o644)
            } catch  where error.isTaken {
                number += 1
            }
        }
    }

    /// Removes the reason for a file that is no longer in quarantine.
    static func remove(beside file: OpenName, disposition: String) {
        var number = 1
        do throws(SystemError) {
            while true {
                let reason = file.beside(name(of: file.name, number, limit: file.folder.longestName))
                if try reason.look() == .missing { return }
                if isReason(reason, disposition) { return try reason.remove() }
                number += 1
            }
        } catch {
            // What cannot be looked at or removed stays: it says what was, and a newer one for that name replaces it.
        }
    }

    static func name(
        of file: FilePath.Component, _ number: Int, limit: Int = FilePath.Component.longest
    ) -> FilePath.Component {
        file.fitting(suffix: number == 1 ? ending : ".reason_\(number).json", limit: limit)
    }

    private static func isReason(_ reason: OpenName, _ disposition: String) -> Bool {
        // What cannot be read is nobody's to replace.
        guard let content = try? reason.folder.read(reason.name, limit: longest) else { return false }
        var own = JSONLine()
        own.add("disposition", disposition)
        let field = own.finished.dropFirst().dropLast()
        return content.starts(with: "{\"job\":".utf8)
            && String(decoding: content, as: UTF8.self).contains(String(decoding: field, as: UTF8.self))
    }
}

/// Brings a file that is to be sent again back from its quarantine, under the name by which it is sent. Blocks.
struct QuarantineReturn: Sendable {
    let file: FileRow

    private var shown: String { Disposition.quarantine(file.disposition) ?? "" }

    /// Moves it, unless that has been done. - Returns: what it is now, under its own name.
    /// - Throws: why it stays where it is: the end of a sentence that begins with the file.
    func run() throws(Refusal) -> FileIdentity {
        do {
            if let lying = try lying() { return try move(lying.name, lying.identity) }
            if let back = try OpenName.find(file.fullPath, below: file.root), let identity = try back.look().identity,
                identity.isKnown(as: file.identity)
            {
                return identity
            }
        } catch let refusal as Refusal {
            throw refusal
        } catch {
            throw Refusal("lies in quarantine as \(shown), and cannot be moved back: \(error)")
        }
        throw Refusal(
            "was quarantined as \(shown), and is not there: is its disk mounted? "
                + "Put it back under \(file.root.display), and it is taken as a new file")
    }

    /// The file where its disposition says; the name in that is written as people read it.
    private func lying() throws -> (name: OpenName, identity: FileIdentity)? {
        for path in Set([FilePath(shown), FilePath(bytes: DisplayText.unescape(shown))]) {
            guard let open = try OpenName.find(path, below: file.root), let identity = try open.look().identity else {
                continue
            }
            guard identity.isKnown(as: file.identity) else {
                throw Refusal("was quarantined as \(shown), where another file is now")
            }
            return (open, identity)
        }
        return nil
    }

    private func move(_ lying: OpenName, _ identity: FileIdentity) throws -> FileIdentity {
        let own = try OpenName(file.fullPath, below: file.root, making: 0o755)
        guard try own.look() == .missing else { throw taken }
        do {
            try lying.rename(to: own)
        } catch {
            if error.isTaken { throw taken }
            guard error.isCrossDevice else { throw error }
            let copy = own.beside(FileCopy.temporaryName(for: own.name))
            do {
                try lying.copy(identity, to: own, by: copy)
            } catch let error as SystemError where error.isTaken {
                throw taken
            }
            try lying.remove()
        }
        try own.folder.synchronize()
        try lying.folder.synchronize()
        QuarantineReason.remove(beside: lying, disposition: file.disposition ?? "")
        guard let now = try own.look().identity, now.isKnown(as: file.identity) else { throw taken }
        return now
    }

    private var taken: Refusal {
        Refusal(
            "lies in quarantine as \(shown), and another file is at \(file.fullPath.display): "
                + "move that away, and retry")
    }
}
