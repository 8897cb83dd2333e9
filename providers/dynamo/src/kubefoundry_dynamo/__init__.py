"""The provider `dynamo`: NVIDIA Dynamo's resource DynamoGraphDeployment."""
