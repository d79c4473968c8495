import Testing

/// What `inlet check` says of adoption that could find nothing.
@Suite struct AdoptCheckTests {
    private static func said(_ key: String) async throws -> String {
        try await Place(key: key, watch: ["existing: adopt", "adopt_check: true"]).inlet("check").output
    }

    @Test(arguments: ["{epoch_ms}_{name}", "{now:yyyy}/{name}", "{now:HH}/{name}", "{now:ss}-{name}", "{seq}-{name}"])
    func `a key that is another one each time is warned of`(_ key: String) async throws {
        #expect(try await Self.said(key).contains("adopt_check, route all: the key '\(key)' is another one each time"))
    }

    @Test func `a key that lasts, at a folder, is fine`() async throws {
        #expect(try await !Self.said("{mtime:yyyy}/{dir}/{name}").contains("adopt_check"))
    }
}
