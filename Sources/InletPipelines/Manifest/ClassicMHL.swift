internal import InletCore
internal import SystemPackage

/// The Media Hash List 1.1 of 2016 (MediaHashList_v1_1.xsd): one file beside what it lists, without a chain.
package enum ClassicMHL {
    /// The document; nil when there is nothing to list. Empty files are left out, and named: the schema has no size 0.
    package static func document(_ content: ManifestContent) -> [UInt8]? {
        let (entries, notes) = content.listed(.mhl)
        if entries.isEmpty { return nil }
        var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<hashlist version=\"1.1\">\n  <creatorinfo>\n"
        text += XMLText.element(2, "username", "inlet") + XMLText.element(2, "hostname", content.host)
        text += XMLText.element(2, "tool", "Inlet \(content.version)")
        text += XMLText.element(2, "startdate", content.startedAt.rfc3339Seconds)
        text += XMLText.element(2, "finishdate", content.endedAt.rfc3339Seconds)
        if !notes.isEmpty { text += XMLText.element(2, "log", notes.joined(separator: "; ")) }
        text += "  </creatorinfo>\n"
        for (path, entry) in entries {
            text += "  <hash>\n" + XMLText.element(2, "file", path) + XMLText.element(2, "size", "\(entry.size)")
            text += XMLText.element(
                2, "lastmodificationdate", WallTime(nanoseconds: entry.modified).rfc3339Seconds)
            text += XMLText.element(2, name(of: entry.digest.algorithm), entry.digest.hex)
            text += XMLText.element(2, "hashdate", entry.hashedAt.rfc3339Seconds) + "  </hash>\n"
        }
        return Array((text + "</hashlist>\n").utf8)
    }

    private static func name(of algorithm: Digest.Algorithm) -> String {
        // The format has two byte orders; the big-endian one is what everybody else calls XXH64.
        algorithm == .xxh64 ? "xxhash64be" : algorithm.rawValue
    }
}
