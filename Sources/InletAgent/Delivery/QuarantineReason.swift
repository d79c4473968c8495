internal import InletCore
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
        while true {
            let reason = file.beside(name(of: file.name, number, limit: file.folder.longestName))
            // What cannot be read or removed stays: it says what was, and a newer one for that name replaces it.
            guard (try? reason.look()) ?? .missing != .missing else { return }
            if isReason(reason, disposition) { return (try? reason.remove()) ?? () }
            number += 1
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
