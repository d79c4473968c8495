internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// The reason for a file's quarantine, in a file beside it: `NAME.reason.json`.
extension OpenName {
    /// Replaces only an earlier reason for the same file. If another file has that name, such as the reason of a file
    /// whose long name was shortened to the same, it becomes `NAME.reason_2.json`.
    ///
    /// - Parameter disposition: names the file that it is about.
    func writeReason(_ receipt: Receipt, disposition: String) throws(SystemError) {
        var number = 1
        while true {
            let reason = reason(number)
            do throws(SystemError) {
                if reason.isReason(disposition) { return try folder.write(receipt.line, to: reason.name, mode: 0o644) }
                return try folder.create(receipt.line, as: reason.name, mode: 0o644)
            } catch  where error.isTaken {
                number += 1
            }
        }
    }

    /// Removes the reason for a file that is no longer in quarantine.
    func removeReason(disposition: String) {
        var number = 1
        do throws(SystemError) {
            while true {
                let reason = reason(number)
                if try reason.look() == .missing { return }
                if reason.isReason(disposition) { return try reason.remove() }
                number += 1
            }
        } catch {
            // A reason that cannot be read or removed stays; a newer one for that name replaces it.
        }
    }

    private func reason(_ number: Int) -> OpenName {
        let ending = number == 1 ? ".reason.json" : ".reason_\(number).json"
        return beside(name.fitting(suffix: ending, limit: folder.longestName))
    }

    private func isReason(_ disposition: String) -> Bool {
        // An unreadable reason is not replaced. A reason has a few hundred bytes per delivery.
        guard let content = try? folder.read(name, limit: 4 << 20) else { return false }
        var own = JSONLine()
        own.add("disposition", disposition)
        let field = own.finished.dropFirst().dropLast()
        return content.starts(with: "{\"job\":".utf8)
            && String(decoding: content, as: UTF8.self).contains(String(decoding: field, as: UTF8.self))
    }
}

extension FileRow {
    private var shown: String { Disposition.quarantine(disposition) ?? "" }

    /// Returns a file from quarantine for another delivery, under its own name, unless that was done. Blocks.
    ///
    /// - Returns: its present identity, under its own name.
    /// - Throws: why it stays in quarantine: the end of a sentence that begins with the file.
    func returnedFromQuarantine() throws(Refusal) -> FileIdentity {
        do {
            if let lying = try lying() { return try move(lying.name, lying.identity) }
            if let back = try OpenName.find(fullPath, below: root), let identity = try back.look().identity,
                identity.isKnown(as: self.identity)
            {
                return identity
            }
        } catch let refusal as Refusal {
            throw refusal
        } catch {
            throw Refusal("lies in quarantine as \(shown); it cannot be moved back: \(error)")
        }
        throw Refusal(
            "was quarantined as \(shown), and is gone: mount its disk, or put the file back under \(root.display) "
                + "to have it admitted as a new file")
    }

    /// Where a file is that may have been on its way back.
    enum ReturnPlace: Sendable {
        case own(FileIdentity)
        case quarantine
        /// Under neither name, or not to be seen now.
        case unknown
    }

    /// Where the file is. Blocks.
    func placeOfReturn() -> ReturnPlace {
        do {
            if let back = try OpenName.find(fullPath, below: root), let now = try back.look().identity,
                now.isKnown(as: identity)
            {
                return .own(now)
            }
            return try lying() == nil ? .unknown : .quarantine
        } catch {
            // Nothing is concluded from an error: whoever retries the file gets the reason.
            return .unknown
        }
    }

    /// The file at the place in its disposition, whose name is written as people read it.
    private func lying() throws -> (name: OpenName, identity: FileIdentity)? {
        for path in Set([FilePath(shown), FilePath(bytes: DisplayText.unescape(shown))]) {
            guard let open = try OpenName.find(path, below: root), let identity = try open.look().identity else {
                continue
            }
            guard identity.isKnown(as: self.identity) else {
                throw Refusal("was quarantined as \(shown); another file has that name now")
            }
            return (open, identity)
        }
        return nil
    }

    private func move(_ lying: OpenName, _ identity: FileIdentity) throws -> FileIdentity {
        let own = try OpenName(fullPath, below: root, making: 0o755)
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
        lying.removeReason(disposition: disposition ?? "")
        guard let now = try own.look().identity, now.isKnown(as: self.identity) else { throw taken }
        return now
    }

    private var taken: Refusal {
        Refusal(
            "lies in quarantine as \(shown), and another file is at \(fullPath.display): "
                + "move that away, and retry")
    }
}
