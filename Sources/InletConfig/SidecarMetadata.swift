package import InletCore
package import SystemPackage

/// What `<file>.yaml` beside a file says of it: fields of the destination, as the route's `with:` has them.
///
/// One flat mapping of names to texts, numbers or lists of them; one called `labels` may be such a mapping itself, and then holds
/// the file's labels. A sidecar is written by whoever may drop files, not by
/// whoever may configure the agent. So nothing is filled in: `${env:NAME}` and `${file:PATH}` stay as they are written,
/// and anchors, aliases, merge keys and tags are refused.
package enum SidecarMetadata {
    /// Larger ones are refused.
    package static let maximumBytes = 64 << 10
    /// Longer names are refused; destinations have none.
    static let longestName = 64

    /// The fields in `bytes`; none for an empty text. Values are as written, without their quotes: a date stays
    /// `2026-11-21`, and `yes` is no truth value. A list becomes its items with `, ` between them. A field without a value
    /// (`notes:`, `~`, `null`) is as if it were not there; `""` is an empty text.
    ///
    /// - Parameter file: the name for errors.
    /// - Throws: everything that is wrong, with its places, in the file's order; broken YAML ends the list.
    package static func parse(_ bytes: [UInt8], file: FilePath) throws(ConfigErrors) -> Sidecar {
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
        let isTooLarge = text.count > maximumBytes
        let source = SourceText(isTooLarge ? [] : text)
        let report = ErrorReport(file: file.display, source: source, mask: SecretMask(source: source, names: []))
        var reader = SidecarReader()
        do throws(Problem) {
            if isTooLarge { throw Problem(.start, "the sidecar is larger than 64 KiB") }
            try reader.read(text)
        } catch {
            reader.problems.append(error)
        }
        if !reader.problems.isEmpty { throw report.errors(reader.problems) }
        return Sidecar(fields: reader.fields, labels: reader.labels)
    }

    /// The labels of a unit, of which a `.inlet.yaml` or the content of a marker says `labels: {project: Roxy}`.
    ///
    /// - Parameter isMarker: it may hold anything else too, which then says nothing about labels.
    /// - Throws: as `parse`; of a marker only if it has a line that begins with `labels:`.
    package static func unitLabels(
        _ bytes: [UInt8], file: FilePath, isMarker: Bool
    ) throws(ConfigErrors) -> [String: String] {
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        if isMarker, !lines.contains(where: { $0.hasPrefix("labels:") }) { return [:] }
        return try parse(bytes, file: file).labels
    }
}

extension SourcePosition {
    static let start = SourcePosition(line: 1, column: 1)
}
