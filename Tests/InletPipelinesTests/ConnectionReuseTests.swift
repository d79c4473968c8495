import InletCore
import InletLinux
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(8))) struct ConnectionReuseTests {
    /// A store that takes everything and keeps its connections open.
    private static func store() throws -> ScriptedServer {
        try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer(headers: "ETag: \"0\"\r\n")
            }
        }
    }

    @Test(arguments: [1, 6])
    func `files of one destination share its connections, however many they are`(_ atOnce: Int) async throws {
        let (server, files) = (try Self.store(), try TemporaryDirectory())
        let factory = PipelineFactory(pool: BlockingPool(name: "reuse", threads: 2), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let pipeline = try factory.place(
            "s3",
            [
                "endpoint": .string("http://127.0.0.1:\(server.port)"), "bucket": .string("sandbox"),
                "access_key": .secret(Secret(S3Account.accessKey)), "secret_key": .secret(S3Account.secretKey),
                "verify": .string("size"),
            ])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<atOnce {
                group.addTask {
                    for number in 0..<20 {
                        let path = try files.write([1, 2, 3], to: FilePath("\(lane)-\(number)"))
                        let source = try SourceFile(opening: path)
                        let order = DeliveryOrder(
                            id: 1, destination: "here", key: "\(lane)/\(number)", mediaType: "video/mp4", fields: [:],
                            source: source.opened)
                        _ = try await pipeline.deliver(source, order, Notes().attempt())
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect((1...atOnce).contains(server.connections), "\(20 * atOnce) files")
    }
}
