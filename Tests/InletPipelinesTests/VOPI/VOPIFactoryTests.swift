import InletCore
import InletLinux
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

struct VOPIFactoryTests {
    private func made(tokens: FilePath?) throws -> Destination {
        let factory = PipelineFactory(
            pool: BlockingPool(name: "vopi", threads: 1), userAgent: "inlet-tests/1", tokens: tokens)
        defer { factory.shutdown() }
        let values: [String: ConfigValue] = [
            "url": .string("https://api.vopi.example"), "results": .string("/srv/results"),
            "auth": .section(section(["refresh_token_file": .string("/etc/seed")])), "max_in_flight": .integer(3),
        ]
        return try factory.make(DestinationSettings(name: "products", type: "vopi", values: section(values)))
    }

    @Test func `uploads take workers, running jobs do not, and the login is kept alive`() throws {
        let directory = try TemporaryDirectory()
        let destination = try made(tokens: directory.path.appending("tokens"))
        #expect(destination.smallLimit < 0)
        #expect(destination.maxInFlight == 3)
        #expect(destination.takesSidecars == false)
        #expect(destination.testExtension == "mp4")
        #expect(destination.accessToken != nil && destination.keepAlive != nil)
    }

    @Test func `without a place for its login there is no destination`() {
        let fault = #expect(throws: SettingFault.self) { try made(tokens: nil) }
        #expect(fault?.key == "auth")
    }
}
