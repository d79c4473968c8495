internal import CCrypto
internal import FoundationEssentials
package import InletCore
package import InletLinux
package import SystemPackage

/// Seals with AES-GCM, by a key of this machine. It lies beside the journal, and no backup contains it.
package struct JournalSeal: Sealing {
    private let key: [UInt8]

    private static let size = 32

    /// Reads the key in the state directory, or makes one; the caller holds the directory's lock. Everything sealed
    /// with a lost key is unknown from then on: uploads begin anew, and an object that a token would delete needs the
    /// server's admin. Where no key can be stored, one serves until the process ends. Blocks.
    ///
    /// - Throws: when a key exists but cannot be read now; it is not replaced.
    package init(keptIn directory: FilePath) throws(SystemError) {
        let path = directory.appending(Self.fileName)
        if let bytes = try Self.kept(at: path) {
            key = bytes
        } else {
            key = .unforeseeable(Self.size)
            // Seals for as long as this process runs.
            try? DurableFile.write(key, to: path, mode: 0o600, asFolderOwner: true)
        }
    }

    /// nil where the key is missing or damaged.
    private static func kept(at path: FilePath) throws(SystemError) -> [UInt8]? {
        do throws(SystemError) {
            let bytes = try DurableFile.read(path, limit: 64)
            return bytes.count == size ? bytes : nil
        } catch  where error.isMissing || error.code == .fileTooLarge {
            return nil
        }
    }

    package static let fileName: FilePath.Component = "journal.key"

    // MARK: - Notes

    /// The prefix of the name of a sealed part of a note.
    private static let prefix = "sealed:"

    /// A note with its secrets removed; nil for one without secrets.
    private static func withoutSecrets(_ name: String, _ note: [UInt8]) -> [UInt8]? {
        if name == UploadRecord.openingName, let plain = UploadRecord.stripped(note) { return plain }
        return DestinationKinds.all.lazy.compactMap { $0.withoutSecrets(name, note) }.first
    }

    package func closed(_ notes: [String: [UInt8]]) -> [String: [UInt8]] {
        var closed = notes
        for (name, note) in notes {
            guard let plain = Self.withoutSecrets(name, note), let sealed = seal(note, for: name, plain) else {
                continue
            }
            closed[name] = plain
            closed[Self.prefix + name] = sealed
        }
        return closed
    }

    package func opened(_ notes: [String: [UInt8]]) -> [String: [UInt8]] {
        var opened = notes.filter { !$0.key.hasPrefix(Self.prefix) }
        for (name, plain) in opened {
            // A part sealed for another note of that name does not open.
            guard let sealed = notes[Self.prefix + name], let note = open(sealed, for: name, plain) else { continue }
            opened[name] = note
        }
        return opened
    }

    // MARK: - Secrets of proofs

    package func closed(_ secrets: ProofSecrets) -> ProofSecrets {
        ProofSecrets(
            Dictionary(
                uniqueKeysWithValues: secrets.all.compactMap { name, text in
                    seal(Array(text.utf8), for: name).map { (name, Self.prefix + Data($0).base64EncodedString()) }
                }))
    }

    package func opened(_ secrets: ProofSecrets) -> ProofSecrets? {
        var opened: [String: String] = [:]
        for (name, text) in secrets.all {
            if text.hasPrefix(Self.prefix) {
                guard let sealed = Data(base64Encoded: String(text.dropFirst(Self.prefix.count))) else { continue }
                opened[name] = open(Array(sealed), for: name).map { String(decoding: $0, as: UTF8.self) }
            } else {
                opened[name] = text
            }
        }
        return opened.isEmpty ? nil : ProofSecrets(opened)
    }

    // MARK: - Sealing

    /// AES-GCM's nonce and tag; the sealed bytes stand between them.
    private static let (nonce, tag) = (Int(INLET_GCM_NONCE), Int(INLET_GCM_TAG))

    /// - Parameter beside: the context that opening requires.
    private func seal(_ bytes: [UInt8], for name: String, _ beside: [UInt8] = []) -> [UInt8]? {
        let (nonce, context) = ([UInt8].unforeseeable(Self.nonce), Self.context(name, beside))
        var sealed = [UInt8](repeating: 0, count: bytes.count)
        var tag = [UInt8](repeating: 0, count: Self.tag)
        guard inlet_gcm_seal(key, nonce, context, context.count, bytes, bytes.count, &sealed, &tag) else { return nil }
        return nonce + sealed + tag
    }

    private func open(_ bytes: [UInt8], for name: String, _ beside: [UInt8] = []) -> [UInt8]? {
        guard bytes.count >= Self.nonce + Self.tag else { return nil }
        let (nonce, tag) = (Array(bytes.prefix(Self.nonce)), Array(bytes.suffix(Self.tag)))
        let (sealed, context) = (Array(bytes.dropFirst(Self.nonce).dropLast(Self.tag)), Self.context(name, beside))
        var plain = [UInt8](repeating: 0, count: sealed.count)
        // Text that does not open was sealed with another key or changed, and is unknown.
        guard inlet_gcm_open(key, nonce, context, context.count, sealed, sealed.count, tag, &plain) else { return nil }
        return plain
    }

    private static func context(_ name: String, _ beside: [UInt8]) -> [UInt8] { Array(name.utf8) + [0] + beside }
}
