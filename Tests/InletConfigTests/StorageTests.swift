import InletConfig
import InletCore
import SystemPackage
import Testing

/// `storage:` of destinations that only register files.
@Suite struct StorageTests {
    private static let types = [
        DestinationType(name: "bucket", summary: "A bucket.", keys: [], givesURLs: true),
        DestinationType(name: "disk", summary: "A disk.", keys: []),
        DestinationType(
            name: "register", summary: "A register.", keys: [KeySpec("storage", .string, "Where files are.")],
            fields: [FieldSpec("role", default: "auto", choices: ["auto", "model"], "What a file is.")],
            takesSidecars: false),
    ]

    private func complaint(storage: String, others: String) -> String {
        let text = """
            destinations:
              spaces: { type: register, storage: \(storage) }
            \(others)
            """
        do throws(ConfigErrors) {
            _ = try ConfigFile.parse(
                text: text, file: "inlet.yaml", types: Self.types, environment: [:], defaults: standInDefaults)
            return ""
        } catch {
            return error.list.map { "\($0.line):\($0.column): \($0.message)" }.joined(separator: "\n")
        }
    }

    @Test(arguments: [
        ("spiral", "  spiral: { type: bucket }", ""),
        ("spiral", "  spirals: { type: bucket }", "2:38: unknown destination 'spiral'; did you mean 'spirals'?"),
        ("spiral", "  x-y: { type: disk }", "2:38: unknown destination 'spiral'; defined are: x-y"),
        ("spaces", "  spiral: { type: bucket }", "2:38: 'spaces' cannot store its own files; name another destination"),
        (
            "library", "  library: { type: disk }",
            "2:38: destination 'library' is of type disk, whose files have no URL; name one of type bucket"
        ),
        (
            "other", "  other: { type: register, storage: spiral }\n  spiral: { type: bucket }",
            "2:38: destination 'other' is of type register, whose files have no URL; name one of type bucket"
        ),
        // What is wrong with the storage itself is said there alone.
        (
            "spiral", "  spiral: { type: buckets }",
            "3:19: 'type' is one of bucket, disk, register, not 'buckets'; did you mean 'bucket'?"
        ),
    ])
    func `a storage is another destination whose files have URLs`(storage: String, others: String, complaint: String) {
        #expect(self.complaint(storage: storage, others: others) == complaint)
    }

    @Test(arguments: [
        ("modell", "7:19: 'role' is one of auto, model, not 'modell'; did you mean 'model'?"), ("Model", ""),
        ("\"{folder[1]}\"", ""),
    ])
    func `a field that can be few words only is checked where it is written`(role: String, complaint: String) {
        let others = """
              spiral: { type: bucket }
            watch: [{ path: /srv }]
            routes:
              - name: models
                with: { role: \(role) }
                to: spaces
            """
        #expect(self.complaint(storage: "spiral", others: others) == complaint)
    }

    @Test func `sidecars are no matter of their own while the storage is not known`() {
        let others = """
              x-y: { type: disk }
            watch: [{ path: /srv }]
            routes:
              - name: models
                match: { extensions: [glb] }
                sidecars: { extensions: [png] }
                to: spaces
            """
        #expect(complaint(storage: "xy", others: others) == "2:38: unknown destination 'xy'; did you mean 'x-y'?")
    }
}
