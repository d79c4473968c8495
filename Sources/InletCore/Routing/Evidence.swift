/// `receipts:` — where a finished file's receipt is written besides the journal, which always keeps it.
package enum ReceiptPlace: String, Sendable, CaseIterable, Codable {
    case none
    /// One JSON file each, below `receipts` of the state directory.
    case folder
    /// Beside the file, wherever that is in the end.
    case sidecar
}

/// `dedupe:` — what happens to a file whose content its destinations have already.
package enum DuplicateRule: String, Sendable, CaseIterable, Codable {
    /// It is sent again.
    case off
    /// It is not sent; it ends as a duplicate of the earlier one.
    case skip
    /// It is not sent; it ends as delivered, at the place of the earlier one.
    case link
}

/// `manifest:` — the checksum list of a unit, for other tools to verify.
package struct ManifestRule: Sendable, Hashable, Codable {
    package enum Format: String, Sendable, CaseIterable, Codable {
        /// ASC MHL 2.0.
        case ascmhl
        /// Media Hash List 1.1.
        case mhl
    }

    /// Those that the lists' readers know.
    package static let algorithms: [Digest.Algorithm] = [.xxh64, .md5, .sha1]

    package var format: Format
    /// What is computed of every file as it is read from its folder.
    package var algorithm: Digest.Algorithm

    package init(format: Format, algorithm: Digest.Algorithm = ManifestKeys.all.hash.standard) {
        self.format = format
        self.algorithm = algorithm
    }
}
