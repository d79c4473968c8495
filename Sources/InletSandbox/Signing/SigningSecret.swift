import Foundation
import InletCore
import SystemPackage

/// The sandbox's own signing key: made once, kept in `signing.key` (mode 0600) so that URLs outlive a restart.
enum SigningSecret {
    static func load(from root: FilePath) throws -> Secret {
        let path = root.appending("signing.key")
        if FileManager.default.fileExists(atPath: path.string) {
            let text = try String(contentsOfFile: path.string, encoding: .utf8)
            if text.count == 64 { return Secret(text) }
        }
        let text = [UInt8].unforeseeable(32).hex
        let draft = root.appending("signing.key.\(UUID().uuidString)")
        let file = try FileDescriptor.open(
            draft, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: [.ownerReadWrite])
        _ = try file.closeAfter { try file.writeAll(text.utf8) }
        try FileMove.rename(draft, to: path)
        return Secret(text)
    }

    /// Compares without telling by its time where the texts differ.
    static func areEqual(_ left: String, _ right: String) -> Bool {
        MessageCode.areEqual(Array(left.utf8), Array(right.utf8))
    }
}
