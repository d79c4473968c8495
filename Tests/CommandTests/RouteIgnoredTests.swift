import InletTestSupport
import SystemPackage
import Testing

/// `inlet route` on what no route is asked about.
@Suite struct RouteIgnoredTests {
    @Test(arguments: [
        (".DS_Store", "'.DS_Store' is on the built-in list of names that are never a user's file: .DS_Store"),
        ("@eaDir/a.jpg", "'@eaDir' is on the built-in list of names that are never a user's file: @eaDir"),
        ("raw/a.bak", "it matches '*.bak' of the folder's 'ignore'"),
    ])
    func `an ignored file is said to be that, by what, and no route takes it`(name: String, reason: String) async throws
    {
        let place = try Place(watch: ["ignore: [\"*.bak\"]"])
        try place.put(FilePath(name), bytes(10))
        let said = try await place.inlet("route", place.drop.pushing(FilePath(name)).string, code: 1)
        #expect(said.output == "\(place.drop)/\(name)\n  ignored: \(reason)\n", "\(said.output)")
    }
}
