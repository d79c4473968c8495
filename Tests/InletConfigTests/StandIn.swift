import InletConfig
import InletCore
import InletTestSupport
import SystemPackage
import Testing

/// Destination types as the pipelines define them, so that these tests need no pipeline.
let standInTypes = [
    DestinationType(
        name: "r2", summary: "An R2 bucket.",
        keys: [
            KeySpec("api", .string, required: true, "Address of the API."),
            KeySpec("dialect", .choice(["seed", "r2", "v1"]), default: "v1", "Generation of the API."),
            KeySpec("api_key", .secret, "The credential."),
            KeySpec("part_size", .bytes, default: "8MiB", "Size of a part."),
            KeySpec("parallel_parts", .integer(1...64), default: "4", "Parts at once."),
            KeySpec("public_url", .string, "Where objects can be read."),
            KeySpec("verify", .choice(["md5", "size"]), default: "md5", "What is compared."),
            KeySpec("allow_http", .boolean, default: "false", "Allow plain HTTP."),
            KeySpec("ca_file", .path, "Certificates to trust."),
            KeySpec("connections", .integer(1...256), default: "32", "Small files at once."),
            KeySpec("max_in_flight", .integer(1...64), "Big files at once."),
        ],
        fields: [
            FieldSpec("label", default: "{stem}", "What people see."), FieldSpec("on", "Where it was."),
            FieldSpec("title", "What it is called."),
        ]),
    DestinationType(
        name: "folder", summary: "A folder.",
        keys: [
            KeySpec("path", .path, required: true, "The folder."),
            KeySpec("verify", .choice(["read-back", "size"]), default: "read-back", "What is compared."),
            KeySpec("min_free", .bytes, default: "0", "Space that must stay free."),
        ]),
]

let standInEnvironment = [
    "SPIRAL_KEY": "canary-spiral", "MAIN_KEY": "canary-main", "SECOND_KEY": "canary-second", "CANARY": "canary-value",
    "API_HOST": "storage.example", "EMPTY": "",
]

/// A place where no file is.
let standInDefaults = ConfigDefaults(
    stateDirectory: "/var/lib/inlet", home: "/nowhere/user", workingDirectory: "/nowhere")

func parse(_ text: String, file: FilePath = "inlet.yaml") throws(ConfigErrors) -> LoadedConfig {
    try ConfigFile.parse(
        text: text, file: file, types: standInTypes, environment: standInEnvironment, defaults: standInDefaults)
}

/// What is wrong with `text`, as printed; an empty text when nothing is.
func complaints(_ text: String) -> String { complaints(Array(text.utf8), file: "inlet.yaml") }

func complaints(_ bytes: [UInt8], file: FilePath) -> String {
    do throws(ConfigErrors) {
        _ = try ConfigFile.parse(
            bytes: bytes, file: file, types: standInTypes, environment: standInEnvironment, defaults: standInDefaults)
        return ""
    } catch {
        return error.description
    }
}
